//! Philly's log: names for jobs that have none, its clusters, and the published window.

use deepshare_model::TenantId;
use deepshare_trace::{
    ClusterOptions, Format, ReadOptions, Selection, read_cluster_from, read_philly_window,
    read_trace_from,
};
use std::io::Cursor;
use std::path::{Path, PathBuf};

const LOG: &str = "timestamp,duration,num_gpus,gpu_time,cluster\n\
    2017-10-09 07:00:10,66.0,1,66.0,small\n\
    2017-10-09 07:00:00,100.0,4,400.0,large\n\
    2017-10-09 07:00:20,5.0,8,40.0,small\n";

#[test]
fn jobs_are_named_by_row_and_belong_to_their_virtual_cluster() {
    let input = Cursor::new(LOG.as_bytes().to_vec());
    let trace = read_trace_from("philly.csv", input, &ReadOptions::default()).unwrap();
    assert_eq!(trace.report.format, Some(Format::Philly));
    let ids: Vec<&str> = trace.jobs.iter().map(|job| job.id.as_str()).collect();
    assert_eq!(ids, ["2", "1", "3"]);
    assert_eq!((trace.tenants.len(), &trace.users), (2, &trace.tenants));
    assert_eq!(trace.jobs[0].gpus, 4);
    assert!(trace.report.imputed.iter().any(|column| column.column == "user"));
}

#[test]
fn a_selection_keeps_order_and_numbers_tenants_anew() {
    let input = Cursor::new(LOG.as_bytes().to_vec());
    let trace = read_trace_from("philly.csv", input, &ReadOptions::default()).unwrap();
    let selection = Selection { without_tenants: vec!["large".to_owned()], max_gpus: Some(4) };
    let part = selection.of(trace.clone());
    assert_eq!(
        (part.tenants.as_slice(), part.users.as_slice()),
        (&["small".to_owned()][..], &["small".to_owned()][..])
    );
    assert_eq!((part.jobs.len(), part.jobs[0].id.as_str()), (1, "1"));
    assert_eq!((part.jobs[0].tenant, part.jobs[0].submit), (TenantId(0), trace.jobs[1].submit));
    assert_eq!(part.report.kept, 1);
    assert_eq!(part.report.notes, ["2 jobs were left out by a selection"]);
    assert_eq!(Selection::default().of(trace.clone()), trace);
}

#[test]
fn virtual_clusters_are_read_by_the_name_philly_gives_their_nodes() {
    let input = Cursor::new(b"vc,node num\nsmall,2\nlarge,3\n".to_vec());
    let cluster = read_cluster_from("philly_vc.csv", input, ClusterOptions::default()).unwrap();
    assert_eq!(
        (cluster.tenant_names(), cluster.gpus()),
        (vec!["small".to_owned(), "large".to_owned()], 40)
    );
}

#[test]
fn a_bad_philly_row_is_refused_with_its_place() {
    let text = LOG.replace("2017-10-09 07:00:20", "tomorrow").replace(",66.0,1", ",x,1");
    let input = Cursor::new(text.into_bytes());
    let why = read_trace_from("p.csv", input, &ReadOptions::default()).unwrap_err().to_string();
    assert!(why.contains("line 2, column 2 (duration)"), "{why}");
    assert!(why.contains("line 4, column 1 (timestamp)"), "{why}");
}

#[test]
fn the_published_window_has_the_published_jobs_on_219_gpus() {
    let folder = std::env::var_os("DEEPSHARE_DATA").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../../shared/data"),
        PathBuf::from,
    );
    if !folder.join("philly/philly.csv.zst").exists() {
        eprintln!("skipped: philly/philly.csv.zst is absent");
        return;
    }
    let (trace, cluster) = read_philly_window(&folder).unwrap();
    assert_eq!((trace.jobs.len(), trace.tenants.len()), (3_096, 10));
    let seconds: f64 = trace.jobs.iter().map(|job| job.duration.0 as f64 / 1e6).sum();
    assert_eq!((seconds / 3_096.0).round(), 37_436.0);
    let one_gpu = trace.jobs.iter().filter(|job| job.gpus == 1).count();
    assert_eq!((one_gpu as f64 / 30.96).round(), 87.0);
    let load = trace.gpu_time().as_gpu_secs() / (219.0 * 14.0 * 86_400.0);
    assert!((load - 0.66).abs() < 0.005, "{load}");
    let sizes: Vec<u32> = cluster.nodes.iter().map(|node| node.gpus).collect();
    assert_eq!((sizes.len(), sizes[0], sizes[27], cluster.gpus()), (28, 8, 3, 219));
    let quotas: u32 = cluster.tenants.iter().map(|tenant| tenant.quota.total()).sum();
    assert_eq!(quotas, 219);
    for job in &trace.jobs {
        let tenant = &cluster.tenants[job.tenant.index()];
        assert!(tenant.quota.total() >= job.gpus, "{} cannot hold its jobs", tenant.name);
    }
    let names: Vec<String> = cluster.tenant_names();
    assert_eq!(names, trace.tenants);
}

//! The published Venus month, read from the data folder if there is one.

use deepshare_trace::{
    ClusterOptions, DropReason, ReadOptions, TimeOptions, Trace, read_cluster, read_estimates,
    read_trace,
};
use std::io::Write;
use std::path::{Path, PathBuf};

/// A file of the data folder, or `None` if it is absent.
fn data(name: &str) -> Option<PathBuf> {
    let folder = std::env::var_os("DEEPSHARE_DATA").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../../shared/data"),
        PathBuf::from,
    );
    let path = folder.join(name);
    if path.exists() {
        return Some(path);
    }
    eprintln!("skipped: {} is absent", path.display());
    None
}

const JOBS: &str = "helios_venus/venus_sept2020_jobs.csv.zst";
const ORDER: &str = "helios_venus/venus_sept2020_trace_order.csv.zst";
const CLUSTER: &str = "helios_venus/vc_config.csv";

fn venus() -> Option<Trace> {
    let (jobs, order) = (data(JOBS)?, data(ORDER)?);
    let cluster = read_cluster(&data(CLUSTER)?, ClusterOptions::default())
        .expect("the published files are sound");
    let options = ReadOptions {
        known_tenants: Some(cluster.tenant_names()),
        known_gpu_types: cluster.gpu_types.clone(),
        order: Some(order),
        times: TimeOptions::lucid(),
        ..ReadOptions::default()
    };
    Some(read_trace(&jobs, &options).expect("the published files are sound"))
}

#[test]
fn venus_has_the_published_jobs_tenants_and_gpu_time() {
    let Some(trace) = venus() else { return };
    assert_eq!(trace.jobs.len(), 23_859);
    assert_eq!(trace.users.len(), 118);
    assert_eq!(trace.report.dropped, []);
    assert_eq!(trace.report.imputed, []);
    let gpu_hours = trace.gpu_time().as_gpu_secs() / 3600.0;
    assert_eq!(gpu_hours.round(), 601_983.0);
    let sum: u64 = trace.jobs.iter().map(|job| job.duration.0 / 1_000_000).sum();
    let mean = sum as f64 / trace.jobs.len() as f64;
    assert!((mean - 11_769.27).abs() < 0.005, "{mean}");
    assert_eq!(trace.jobs[0].submit.0, 13_219_203_000_000);
    let of =
        |vc: &str| trace.jobs.iter().filter(|job| trace.tenants[job.tenant.index()] == vc).count();
    let published = [
        ("vcEwI", 7603),
        ("vcWoR", 2826),
        ("vcHvQ", 2654),
        ("vcKeu", 2301),
        ("vcJsw", 1854),
        ("vcYVn", 1525),
        ("vcvGl", 1452),
        ("vc8Gr", 710),
        ("vcefl", 679),
        ("vchA3", 651),
        ("vcLTP", 518),
        ("vcKrE", 426),
        ("vcvlY", 415),
        ("vchbv", 196),
        ("vcgkz", 49),
    ];
    assert_eq!(trace.tenants.len(), published.len());
    for (vc, jobs) in published {
        assert_eq!(of(vc), jobs, "{vc}");
    }
}

#[test]
fn the_order_file_decides_between_jobs_of_the_same_second() {
    let (Some(trace), Some(jobs), Some(order)) = (venus(), data(JOBS), data(ORDER)) else { return };
    let listed = zstd::decode_all(std::fs::File::open(order).unwrap()).unwrap();
    let listed = String::from_utf8(listed).unwrap();
    let ids: Vec<&str> = trace.jobs.iter().map(|job| job.id.as_str()).collect();
    assert_eq!(ids, listed.lines().skip(1).collect::<Vec<_>>());
    let plain = read_trace(&jobs, &ReadOptions::default()).unwrap();
    assert_ne!(plain.jobs, trace.jobs, "the order file changes nothing");
}

#[test]
fn the_cluster_has_the_published_partitions() {
    let Some(path) = data(CLUSTER) else { return };
    let cluster = read_cluster(&path, ClusterOptions::default()).unwrap();
    assert_eq!((cluster.nodes.len(), cluster.gpus(), cluster.tenants.len()), (135, 1080, 15));
    assert_eq!(cluster.tenants[0].name, "vcEwI");
    assert_eq!(cluster.tenants[0].quota.total(), 72);
    assert_eq!(cluster.nodes[9].name, "vcWoR-0");
}

#[test]
fn both_estimate_files_cover_the_month_and_only_one_is_negative() {
    let (Some(trace), Some(lgb), Some(ebm)) = (
        venus(),
        data("lucid_venus/Venus_Sept_lgb.csv.zst"),
        data("lucid_venus/Venus_Sept_ebm_weekly_updated.csv"),
    ) else {
        return;
    };
    let lgb = read_estimates(&lgb, &trace, None).unwrap();
    assert_eq!((lgb.values.len(), lgb.ignored, lgb.replaced), (23_859, 0, 0));
    assert_eq!(lgb.values.iter().min().unwrap().0, 10_179_000_000);
    let refused = read_estimates(&ebm, &trace, None).unwrap_err().to_string();
    assert!(
        refused.contains("is a negative estimate") && refused.contains("and 6843 more"),
        "{refused}"
    );
    let thousand = deepshare_model::Span::from_secs(1000);
    let ebm = read_estimates(&ebm, &trace, Some(thousand)).unwrap();
    assert_eq!((ebm.ignored, ebm.replaced), (14, 6_863));
}

/// The same month with dates, a CPU job, a foreign tenant and the columns of the artifact.
fn dated(trace: &Trace, april: bool) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().expect("a temporary file can be written");
    let header = "job_id,user,vc,jobname,gpu_num,cpu_num,state,submit_time,duration,dataset,\
                  model,batchsize,amp,speed,gpu_util,gmem_util,gmem";
    writeln!(file, "{header}").expect("a temporary file can be written");
    let origin = jiff::civil::date(2020, 4, 1).at(0, 2, 31, 0);
    let mut row = |id: &str, user: &str, vc: &str, gpus: u32, seconds: u64, duration: u64| {
        let date = origin + std::time::Duration::from_secs(seconds);
        let date = date.strftime("%Y-%m-%d %H:%M:%S");
        writeln!(
            file,
            "{id},{user},{vc},,{gpus},1,COMPLETED,{date},{duration},d,m,8,0,1,50,10,999"
        )
        .expect("a temporary file can be written");
    };
    if april {
        row("first", "u", "vcEwI", 1, 0, 5);
        row("cpu", "u", "vcEwI", 0, 0, 0);
        row("foreign", "u", "vcOther", 1, 14_000_000, 5);
    }
    for job in &trace.jobs {
        let (user, vc) = (&trace.users[job.user.index()], &trace.tenants[job.tenant.index()]);
        let (seconds, duration) = (job.submit.0 / 1_000_000, job.duration.0 / 1_000_000);
        row(&job.id, user, vc, job.gpus, seconds, duration);
    }
    file
}

#[test]
fn a_log_with_dates_gives_the_same_month_whether_or_not_it_holds_april() {
    let Some(trace) = venus() else { return };
    for april in [true, false] {
        let file = dated(&trace, april);
        let options = ReadOptions {
            known_tenants: Some(trace.tenants.clone()),
            order: data(ORDER),
            times: TimeOptions::lucid(),
            ..ReadOptions::default()
        };
        let read = read_trace(file.path(), &options).unwrap();
        assert_eq!(read.report.origin.as_deref(), Some("2020-04-01 00:02:31"));
        assert_eq!(read.report.notes.is_empty(), april, "{:?}", read.report.notes);
        let dropped: Vec<_> = read.report.dropped.iter().map(|(reason, _)| *reason).collect();
        let expected: &[DropReason] = if april {
            &[DropReason::NoGpu, DropReason::UnknownTenant, DropReason::OutsideWindow]
        } else {
            &[]
        };
        assert_eq!(dropped, expected);
        assert_eq!(read.jobs.len(), trace.jobs.len());
        for (a, b) in read.jobs.iter().zip(&trace.jobs) {
            assert_eq!((&a.id, a.submit, a.duration), (&b.id, b.submit, b.duration));
        }
    }
}

#[test]
fn without_a_preset_a_log_with_dates_starts_at_its_first_midnight() {
    let Some(trace) = venus() else { return };
    let read = read_trace(dated(&trace, false).path(), &ReadOptions::default()).unwrap();
    assert_eq!(read.report.origin.as_deref(), Some("2020-09-01 00:00:00"));
    assert_eq!(read.jobs[0].submit.0, 154_000_000);
}

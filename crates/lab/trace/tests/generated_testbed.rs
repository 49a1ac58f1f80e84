//! The generated testbed: what is stated of it holds for every seed.

use deepshare_model::Class;
use deepshare_trace::generate::{scale, testbed, venus_like};
use deepshare_trace::{ClusterOptions, cluster_toml, read_cluster_from};

#[test]
fn fifty_jobs_of_one_two_and_four_gpus_compete_for_sixteen() {
    for seed in 0..20 {
        let (trace, cluster) = testbed(seed);
        assert_eq!((cluster.nodes.len(), cluster.gpus()), (2, 16));
        assert_eq!(cluster.tenants.iter().map(|tenant| tenant.quota.total()).sum::<u32>(), 16);
        let of = |gpus: u32| trace.jobs.iter().filter(|job| job.gpus == gpus).count();
        assert_eq!((of(1), of(2), of(4), trace.jobs.len()), (38, 8, 4, 50));
        let class = |class| trace.jobs.iter().filter(|job| job.class == Some(class)).count();
        assert_eq!((class(Class::Guaranteed), class(Class::BestEffort)), (30, 20));
        let work = trace.gpu_time().as_gpu_secs();
        assert!((work - 54_000.0).abs() < 50.0, "seed {seed}: {work} GPU-seconds");
        for job in &trace.jobs {
            assert!(job.gpus <= cluster.tenants[job.tenant.index()].quota.total());
        }
    }
    assert_ne!(testbed(1).0.jobs, testbed(2).0.jobs);
}

#[test]
fn generated_clusters_read_back_as_they_were() {
    let month = venus_like(1, &deepshare_trace::generate::GeneratorOptions::days(1)).1;
    for cluster in [testbed(1).1, scale(1, 100).1, month] {
        let text = cluster_toml(&cluster);
        let input = std::io::Cursor::new(text.clone().into_bytes());
        let read = read_cluster_from("c.toml", input, ClusterOptions::default()).unwrap();
        assert_eq!(read, cluster, "{text}");
    }
}

#[test]
fn every_term_of_a_cluster_is_written() {
    let text = "[[node]]\nname = \"solo\"\ngpus = 4\ngpu_type = \"x\"\ncpus = 1.5\n\
                [[node]]\nname = \"big\"\ncount = 2\ngpus = 8\ngpu_type = \"y\"\n\
                gpu_memory_mib = 80\nmemory_mib = 9\ntenant = \"a b\"\n\
                [[tenant]]\nname = \"top\"\n[[tenant]]\nname = \"a b\"\nparent = \"top\"\n\
                quota = { x = 1, y = 2 }\nbest_effort_multiple = 1.25\nlending_limit = 3\n\
                min_run_time_s = 0.5\n";
    let read = |text: &str| {
        let input = std::io::Cursor::new(text.to_owned().into_bytes());
        read_cluster_from("c.toml", input, ClusterOptions::default()).unwrap()
    };
    let cluster = read(text);
    assert_eq!(read(&cluster_toml(&cluster)), cluster, "{}", cluster_toml(&cluster));
}

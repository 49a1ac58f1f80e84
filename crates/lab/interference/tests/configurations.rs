//! Pools of training configurations: what a file says, who draws what, and what is refused.

use deepshare_interference::{
    Assignment, ConfigurationsFile, ProfileSource, read_configurations, read_configurations_from,
};
use deepshare_model::Training;
use deepshare_trace::{
    Cluster, ClusterOptions, ReadOptions, Trace, read_cluster_from, read_trace_from,
};
use std::io::Cursor;
use std::path::Path;

const HEAD: &str = "model,batchsize,weight,gpu_util,gmem_util,memory_fixed_mib,memory_sample_kib,\
                    compute_fixed_s,compute_sample_s,source";

fn fixture() -> ConfigurationsFile {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/pool.csv");
    read_configurations(&path).expect("the fixture is sound")
}

fn pool(text: &str) -> Result<ConfigurationsFile, String> {
    let input = Cursor::new(text.as_bytes().to_vec());
    read_configurations_from("pool.csv", input).map_err(|error| error.to_string())
}

fn trace(rows: &str) -> Trace {
    let text = format!("job_id,tenant,gpus,submit_s,duration_s,gpu_type\n{rows}");
    let options =
        ReadOptions { known_gpu_types: vec!["T4".into(), "V100".into()], ..ReadOptions::default() };
    read_trace_from("jobs.csv", Cursor::new(text.into_bytes()), &options).expect("it is sound")
}

/// Four nodes of 4 T4 with 15 GiB, and one of 8 V100 that do not say.
fn cluster() -> Cluster {
    let text = "[[node]]\nname = \"t\"\ncount = 4\ngpus = 4\ngpu_type = \"T4\"\n\
                gpu_memory_mib = 15360\n[[node]]\nname = \"v\"\ngpus = 8\ngpu_type = \"V100\"\n";
    let input = Cursor::new(text.to_owned().into_bytes());
    read_cluster_from("c.toml", input, ClusterOptions::default()).expect("it is sound")
}

#[test]
fn a_row_says_what_a_configuration_asks_of_a_gpu_and_how_fast_it_is() {
    let file = fixture();
    let [detector, tagger, encoder] = &file.configurations[..] else { panic!("three rows") };
    // 2,000 MiB and 12 samples of 600 MiB; 12 / (0.2164 + 12 · 0.0243).
    assert_eq!((detector.profile.memory_mib, detector.profile.compute), (9_200, 0.7));
    let speed = detector.profile.throughput.unwrap();
    assert!((speed - 12.0 / 0.508).abs() < 1e-9, "{speed}");
    assert_eq!(
        (detector.least_gpus, detector.most_gpus, detector.weight_milli),
        (1, u32::MAX, 1_000)
    );
    // Named by a batch that is not known, computing with another.
    assert_eq!((tagger.profile.workload.batch, tagger.profile.training.unwrap().batch), (0, 64));
    assert_eq!((tagger.least_gpus, tagger.most_gpus), (1, 1));
    assert_eq!(encoder.profile.training.unwrap().overlap_milli, 2_500);
    assert_eq!((encoder.source.as_str(), encoder.line), ("ours", 4));
}

#[test]
fn communication_goes_by_whether_the_job_fits_into_a_node() {
    let trace = trace("a,t,1,0,508,\nb,t,4,0,591,T4\nc,t,8,0,591,\nd,t,8,0,1727,T4\ne,t,1,0,0,\n");
    let file = fixture();
    let only = ConfigurationsFile { configurations: file.configurations[..1].to_vec(), ..file };
    let drawn = Assignment::from_pool(&only, &trace, &cluster(), 24_576, 1).unwrap();
    let training: Vec<Training> = drawn.training.iter().map(|one| one.unwrap()).collect();
    let communication = training.iter().map(|one| one.time.communication_us);
    assert_eq!(communication.collect::<Vec<_>>(), [0, 83_000, 83_000, 1_219_000, 0]);
    // Iterations of 0.508, 0.591, 0.591 and 1.727 s; a job without a duration has one.
    let iterations = training.iter().map(|one| one.iterations);
    assert_eq!(iterations.collect::<Vec<_>>(), [1_000, 1_000, 1_000, 1_000, 1]);
    assert_eq!(drawn.source, ProfileSource::Pool { file: only.file, seed: 1 });
}

#[test]
fn jobs_draw_by_weight_among_what_is_for_their_gpus() {
    let row = |at: usize| format!("{at},t,{},{at},60,\n", 1 + at % 2);
    let trace = trace(&(0..8_000).map(row).collect::<String>());
    let draw = |seed| Assignment::from_pool(&fixture(), &trace, &cluster(), 24_576, seed).unwrap();
    let drawn = draw(7);
    assert_eq!(drawn, draw(7));
    assert_ne!(drawn.of_job, draw(8).of_job);
    let share = |model: &str, first: usize| {
        let of = drawn.of_job.iter().skip(first).step_by(2);
        let name = |class: &&_| drawn.catalogue.get(**class).workload.model == model;
        of.filter(name).count() as f64 / 4_000.0
    };
    for (model, alone, gangs) in
        [("detector", 0.25, 1.0 / 3.0), ("tagger", 0.75, 0.0), ("encoder", 0.0, 2.0 / 3.0)]
    {
        let (found, wide) = (share(model, 0), share(model, 1));
        assert!(
            (found - alone).abs() < 0.03 && (wide - gangs).abs() < 0.03,
            "{model}: {found} {wide}"
        );
    }
}

#[test]
fn what_no_gpu_holds_in_one_step_is_refused_with_the_configuration_and_the_device() {
    let file = fixture();
    let only = ConfigurationsFile { configurations: file.configurations[..1].to_vec(), ..file };
    let drawn = |rows: &str, mib: u32| {
        Assignment::from_pool(&only, &trace(rows), &cluster(), mib, 1).map_err(|e| e.to_string())
    };
    // The T4 has room for it where the V100 has not.
    assert!(drawn("a,t,1,0,60,\n", 8_000).is_ok());
    let said = drawn("a,t,1,0,60,V100\nb,t,1,0,60,V100\n", 8_000).unwrap_err();
    assert!(
        said.contains(
            "line 2: detector on streets, batch 12 takes 9200 MiB of a GPU in one step, and the \
             largest that job \"a\" may use has 8000 MiB, on node \"v\" (GPU type \"V100\"); \
             lower its batch or memory"
        ),
        "{said}"
    );
    assert_eq!(said.matches("line 2").count(), 1, "once a configuration: {said}");
}

#[test]
fn a_job_that_no_configuration_is_for_is_refused() {
    let text = format!("{HEAD},gpus_max\nm,8,1,50,20,900,0,0.1,0,ours,2\n");
    let jobs = trace("a,t,2,0,9,\nb,t,3,0,9,\n");
    let file = pool(&text).unwrap();
    let said = Assignment::from_pool(&file, &jobs, &cluster(), 8_000, 1).unwrap_err().to_string();
    let expected = "pool.csv: no configuration is for 3 GPUs, as job \"b\" has; widen gpus_min";
    assert!(said.contains(expected), "{said}");
}

#[test]
fn what_cannot_be_is_refused_with_its_place_and_remedy() {
    let head = format!("{HEAD},gpus_min,gpus_max,batch_gpu,overlap\n");
    let refused = |row: &str, expected: &str| {
        let said = pool(&format!("{head}{row}\n")).unwrap_err();
        assert!(said.contains(expected), "{expected}\nis not in\n{said}");
    };
    refused(",8,1,50,20,900,9,0.1,0,ours,,,,", "line 2, column 1 (model): ");
    refused("m,0,1,50,20,900,9,0.1,0,ours,,,,", "column 2 (batchsize): \"0\" is no batch");
    refused("m,8,0,50,20,900,9,0.1,0,ours,,,,", "column 3 (weight): \"0\" is no chance; leave");
    refused("m,8,1,101,20,900,9,0.1,0,ours,,,,", "column 4 (gpu_util): \"101\" is above");
    refused("m,8,1,50,20,-9,9,0.1,0,ours,,,,", "column 6 (memory_fixed_mib): \"-9\" is negative");
    refused("m,8,1,50,20,900,9,,0,ours,,,,", "column 8 (compute_fixed_s): ");
    refused("m,8,1,50,20,900,9,0,0,ours,,,,", "column 8 (compute_fixed_s): an iteration takes no");
    refused("m,8,1,50,20,900,9,0.1,0,,,,,", "column 10 (source): \"\" is empty; say where");
    refused(
        "m,8,1,50,20,900,9,0.1,0,ours,4,2,,",
        "column 12 (gpus_max): leaves no jobs: at least 4",
    );
    refused("m,8,1,50,20,900,9,0.1,0,ours,,0,,", "column 12 (gpus_max): leaves no jobs");
    refused("m,8,1,50,20,900,9,0.1,0,ours,,,0,", "column 13 (batch_gpu): \"0\" is no batch");
    refused("m,8,1,50,20,900,9,0.1,0,ours,,,,0.5", "column 14 (overlap): \"0.5\" is below 1");
    refused("m,8,1,50,20,900,9,0.1,0,ours,,,,10.1", "column 14 (overlap): \"10.1\" is above");
    let twice = "m,8,1,50,20,900,9,0.1,0,ours,,,,\nm,8,1,50,20,900,9,0.1,0,ours,,,,";
    refused(
        twice,
        "line 3, column 1 (model): \"m\" with this dataset, batchsize and amp is on line 2",
    );
    assert!(pool(&head).unwrap_err().contains("there is no configuration in it; add a row"));
    let said = pool("model,batchsize,weight\n").unwrap_err();
    assert!(said.contains("the header lacks gpu_util and gmem_util and"), "{said}");
}

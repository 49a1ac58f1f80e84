//! The pools and pairs that come with the program. Tables of pairs are compared with Gavel's file
//! where the data folder has it; `UPDATE_TABLES=1` writes them anew.

use deepshare_interference::{
    Catalogue, Measured, PairOptions, PairSource, PairTable, RetentionMatrix,
    SHIPPED_CONFIGURATIONS, SHIPPED_PAIRS, Shipped, Workload, read_pairs,
};
use deepshare_interference::{ContentionModel, Mechanism};
use std::path::{Path, PathBuf};

/// Configurations of six-models, and the nearest of Gavel with its batch (0: not in the name).
const NEAREST: [(&str, u32, &str, u32); 6] = [
    ("bert", 12, "Transformer", 64),
    ("cifar10", 128, "ResNet-18", 128),
    ("deepspeech2", 20, "LM", 20),
    ("imagenet", 96, "ResNet-50", 64),
    ("ncf", 32_768, "Recommendation", 2_048),
    ("yolov3", 8, "CycleGAN", 0),
];

fn named(files: &[Shipped], name: &str) -> Shipped {
    *files.iter().find(|file| file.name == name).expect("it is shipped")
}

fn workload(model: &str, batch: u32) -> Workload {
    let (model, dataset) = (model.to_owned(), String::new());
    Workload { model, dataset, batch, mixed_precision: false }
}

fn catalogue(name: &str) -> Catalogue {
    let file = named(&SHIPPED_CONFIGURATIONS, name).configurations().expect("it is sound");
    Catalogue::new(file.configurations.into_iter().map(|one| one.profile).collect())
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

/// Gavel's pairs on this GPU type; `None` where the data folder is absent.
fn gavel(gpu: &str) -> Option<PairTable> {
    let data = std::env::var_os("DEEPSHARE_DATA");
    let data = data.map_or_else(|| root().join("../shared/data"), |given| root().join(given));
    let file = data.join("gavel/simulation_throughputs.json.zst");
    if !file.exists() {
        eprintln!("skipped: {} is absent", file.display());
        return None;
    }
    let options = PairOptions { gpu_type: Some(gpu.to_owned()), ..PairOptions::default() };
    Some(read_pairs(&file, &options).expect("the file is sound"))
}

/// A table of these workloads, each beside each once, with the pairs of others that stand for them.
fn table(gpu: &str, pairs: &PairTable, all: &[(Workload, Workload)]) -> String {
    let mut text = "model_a,dataset_a,batch_a,amp_a,retention_a,model_b,dataset_b,batch_b,amp_b,\
                    retention_b,mechanism,source\n"
        .to_owned();
    for (at, (one, stands_for_one)) in all.iter().enumerate() {
        for (other, stands_for_other) in &all[at..] {
            let kept = |own, beside| match pairs.find(own, beside) {
                Some(Measured::Retention(kept)) => format!("{kept:.4}"),
                Some(Measured::DoesNotFit) => "0".to_owned(),
                None => panic!("Gavel has {own} beside {beside}"),
            };
            text += &format!(
                "{},,{},0,{},{},,{},0,{},mps,Gavel {gpu}: {} beside {}\n",
                one.model,
                one.batch,
                kept(stands_for_one, stands_for_other),
                other.model,
                other.batch,
                kept(stands_for_other, stands_for_one),
                name(stands_for_one),
                name(stands_for_other),
            );
        }
    }
    text
}

/// A workload's name without a comma.
fn name(workload: &Workload) -> String {
    match workload.batch {
        0 => workload.model.clone(),
        batch => format!("{} (batch size {batch})", workload.model),
    }
}

fn assert_is(file: Shipped, text: &str) {
    if std::env::var_os("UPDATE_TABLES").is_some() {
        std::fs::write(root().join(file.path), text).expect("the repository can be written");
    } else {
        let remedy = "write it anew with UPDATE_TABLES=1";
        assert!(file.text == text, "{} is not what Gavel's file says; {remedy}", file.path);
    }
}

#[test]
fn the_tables_of_pairs_are_what_gavel_measured() {
    for (gpu, file) in [("v100", "six-models"), ("p100", "six-models-p100")] {
        let Some(pairs) = gavel(gpu) else { return };
        let of = |&(own, batch, model, gavels): &(&str, u32, &str, u32)| {
            (workload(own, batch), workload(model, gavels))
        };
        let all: Vec<(Workload, Workload)> = NEAREST.iter().map(of).collect();
        assert_is(named(&SHIPPED_PAIRS, file), &table(gpu, &pairs, &all));
    }
    let Some(pairs) = gavel("v100") else { return };
    let all: Vec<(Workload, Workload)> =
        pairs.workloads().into_iter().map(|one| (one.clone(), one.clone())).collect();
    assert_eq!(all.len(), 26);
    assert_is(named(&SHIPPED_PAIRS, "pool-29"), &table("v100", &pairs, &all));
}

#[test]
fn every_pair_of_the_six_is_in_their_tables_and_676_of_the_841_of_the_pool() {
    let model = ContentionModel::default();
    for (pool, pairs, counts) in [
        ("six-models", "six-models", [36, 0, 0]),
        ("six-models", "six-models-p100", [36, 0, 0]),
        ("pool-29", "pool-29", [636, 165, 40]),
    ] {
        let catalogue = catalogue(pool);
        let table = named(&SHIPPED_PAIRS, pairs).pairs().unwrap();
        let (truth, coverage) =
            RetentionMatrix::truth(&catalogue, Some(&table), &model, Mechanism::Mps);
        let sources = [PairSource::Table, PairSource::Model, PairSource::DoesNotFit];
        assert_eq!(sources.map(|source| coverage.count(source)), counts, "{pairs}");
        assert_eq!(table.mechanism, Some(Mechanism::Mps));
        assert!(
            truth.as_rows().flatten().all(|kept| *kept > 50_000),
            "{pairs}: nobody stands still"
        );
    }
    assert_eq!((catalogue("six-models").len(), catalogue("pool-29").len()), (6, 29));
}

#[test]
fn every_configuration_names_its_source_and_fits_a_gpu_of_16_gb() {
    for file in SHIPPED_CONFIGURATIONS {
        for one in file.configurations().unwrap().configurations {
            assert!(one.source.contains(':'), "{}", one.source);
            let memory = one.profile.memory_mib;
            assert!(memory <= 15_360, "{}: {memory} MiB", one.profile.workload);
        }
    }
}

#[test]
fn the_iteration_times_of_the_pool_are_what_gavel_measured_alone() {
    // The reader of pairs keeps no speeds alone; these are 1 over them, as published, for both ends
    // of what the pool's slopes were fitted on.
    let catalogue = catalogue("pool-29");
    for (model, batch, steps_per_s) in [
        ("ResNet-18", 16, 32.353_384),
        ("ResNet-50", 128, 2.496_766),
        ("Transformer", 256, 1.595_141),
        ("LM", 5, 109.166_618),
        ("Recommendation", 8_192, 2.841_510),
        ("A3C", 0, 7.175_767),
        ("CycleGAN", 0, 4.426_088),
    ] {
        let class = catalogue.find(&workload(model, batch)).expect("it is in the pool");
        let profile = catalogue.get(class);
        let iterations = profile.throughput.unwrap() / f64::from(profile.training.unwrap().batch);
        let off = iterations / steps_per_s - 1.0;
        assert!(off.abs() < 1e-3, "{model}: {iterations} for {steps_per_s}");
    }
}

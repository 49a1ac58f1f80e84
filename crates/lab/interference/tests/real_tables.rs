//! The published tables, read from the data folder if there is one.

use deepshare_interference::{
    Assignment, ContentionModel, Mechanism, PairFormat, PairOptions, PairSource, PairTable,
    RetentionMatrix, read_pairs, read_profiles,
};
use deepshare_model::ProfileClassId;
use deepshare_trace::{Trace, read_venus_month};
use std::path::{Path, PathBuf};

/// The data folder, if it has this file.
fn data(name: &str) -> Option<PathBuf> {
    let folder = std::env::var_os("DEEPSHARE_DATA").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../../shared/data"),
        PathBuf::from,
    );
    if folder.join(name).exists() {
        return Some(folder);
    }
    eprintln!("skipped: {} is absent", folder.join(name).display());
    None
}

fn lucid() -> Option<PairTable> {
    let file = "lucid_venus/colocate_info.csv";
    let read = read_pairs(&data(file)?.join(file), &PairOptions::default());
    Some(read.expect("the published file is sound"))
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

#[test]
fn lucid_s_table_has_the_published_pairs() {
    let Some(table) = lucid() else { return };
    assert_eq!((table.format, table.rows().len()), (PairFormat::Lucid, 1_388));
    assert_eq!(table.workloads().len(), 56);
    let both = |row: &deepshare_interference::PairRow| row.retention.map(|(a, b)| [a, b]);
    let all: Vec<f64> = table.rows().iter().filter_map(both).flatten().collect();
    assert_eq!(all.len(), 2 * 1_388);
    assert!((mean(&all) - 0.937).abs() < 0.0005, "{}", mean(&all));
    let least = all.iter().copied().fold(f64::MAX, f64::min);
    let most = all.iter().copied().fold(f64::MIN, f64::max);
    assert_eq!((least, most), (0.444, 1.498));
}

#[test]
fn gavel_s_throughputs_have_the_published_pairs_on_each_gpu_type() {
    let file = "gavel/simulation_throughputs.json.zst";
    let Some(folder) = data(file) else { return };
    for (gpu_type, unfit, wanted) in [("k80", 87, 0.537), ("p100", 20, 0.598), ("v100", 40, 0.657)]
    {
        let options = PairOptions { gpu_type: Some(gpu_type.to_owned()), format: None };
        let table = read_pairs(&folder.join(file), &options).unwrap();
        assert_eq!((table.rows().len(), table.workloads().len()), (676, 26), "{gpu_type}");
        let kept: Vec<f64> =
            table.rows().iter().filter_map(|row| row.retention).map(|r| r.0).collect();
        assert_eq!(676 - kept.len(), unfit, "{gpu_type}");
        assert!((mean(&kept) - wanted).abs() < 0.0005, "{gpu_type}: {}", mean(&kept));
    }
}

#[test]
fn blox_s_table_has_the_published_pairs() {
    let file = "blox_llm_colocation/norm_speed.csv";
    let Some(folder) = data(file) else { return };
    let table = read_pairs(&folder.join(file), &PairOptions::default()).unwrap();
    assert_eq!((table.rows().len() as u64 + table.left_out, table.left_out), (660, 30));
    let kept: Vec<(f64, f64)> = table.rows().iter().filter_map(|row| row.retention).collect();
    assert_eq!((kept.len(), table.rows().len() - kept.len()), (543, 87));
    let (one, other): (Vec<f64>, Vec<f64>) = kept.into_iter().unzip();
    assert!((mean(&one) - 0.575).abs() < 0.0005 && (mean(&other) - 0.682).abs() < 0.0005);
}

/// Compute weighted by GPU-hours.
fn weighted_compute(trace: &Trace, assignment: &Assignment) -> f64 {
    let (mut sum, mut weight) = (0.0, 0.0);
    for (job, class) in trace.jobs.iter().zip(&assignment.of_job) {
        let hours = job.duration.on(job.gpus).as_gpu_secs() / 3_600.0;
        sum += hours * assignment.catalogue.get(*class).compute;
        weight += hours;
    }
    sum / weight
}

#[test]
fn venus_has_66_classes_of_which_ten_have_no_measured_pair() {
    let file = "lucid_venus/venus_sept2020_profiles.csv.zst";
    let (Some(folder), Some(table)) = (data(file), lucid()) else { return };
    let (trace, _) = read_venus_month(&folder).unwrap();
    let assignment = Assignment::from_file(&read_profiles(&folder.join(file)).unwrap(), &trace);
    let assignment = assignment.unwrap();
    assert_eq!((assignment.catalogue.len(), assignment.averaged), (66, 0));
    assert!((weighted_compute(&trace, &assignment) - 0.635).abs() < 0.0005);
    let model = ContentionModel::default();
    let slicing = Mechanism::TimeSlicing;
    let (truth, coverage) =
        RetentionMatrix::truth(&assignment.catalogue, Some(&table), &model, slicing);
    assert_eq!(truth.classes(), 66);
    // 1,388 pairs, of which 56 are of a workload with itself, leave 1,636 of 4,356 to the model.
    let sources = [PairSource::Table, PairSource::Model, PairSource::DoesNotFit];
    assert_eq!(sources.map(|source| coverage.count(source)), [2_720, 1_636, 0]);
    let unmeasured: Vec<ProfileClassId> =
        assignment.catalogue.ids().filter(|class| coverage.is_unmeasured(*class)).collect();
    assert_eq!(unmeasured.len(), 10);
    let (mut without, mut all) = (0.0, 0.0);
    for (job, class) in trace.jobs.iter().zip(&assignment.of_job) {
        let time = job.duration.on(job.gpus).as_gpu_secs();
        all += time;
        without += if unmeasured.contains(class) { time } else { 0.0 };
    }
    assert!((without / all - 0.21).abs() < 0.01, "{}", without / all);
    let (_, reached) = truth.estimated(0.902, 1);
    assert!((reached - 0.902).abs() < 0.01, "{reached}");
}

#[test]
fn drawn_profiles_load_venus_about_as_much_as_published_ones() {
    let Some(folder) = data("helios_venus/vc_config.csv") else { return };
    let (trace, _) = read_venus_month(&folder).unwrap();
    let means = [1, 2, 3].map(|seed| weighted_compute(&trace, &Assignment::drawn(&trace, seed)));
    for mean in means {
        assert!((mean - 0.60).abs() < 0.05, "{means:?}");
    }
}

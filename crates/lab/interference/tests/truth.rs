//! Properties of the truth and of predictions of it.

use deepshare_interference::{
    Catalogue, Coefficients, ContentionModel, Mechanism, PairOptions, PairSource,
    PredictionQuality, Profile, RetentionMatrix, Workload, built_in_profiles, read_pairs_from,
};
use deepshare_model::ProfileClassId;
use proptest::prelude::*;

fn share() -> impl Strategy<Value = f64> {
    prop_oneof![Just(0.0), Just(1.0), 0.0..1.0]
}

fn mechanism() -> impl Strategy<Value = Mechanism> {
    prop_oneof![Just(Mechanism::Mps), Just(Mechanism::TimeSlicing)]
}

fn profile(model: &str, compute: f64, bandwidth: f64) -> Profile {
    let workload = Workload {
        model: model.to_owned(),
        dataset: String::new(),
        batch: 1,
        mixed_precision: false,
    };
    Profile { workload, compute, bandwidth, memory_mib: 1_000, throughput: None, training: None }
}

proptest! {
    #[test]
    fn a_heavier_partner_is_never_felt_less(
        mechanism in mechanism(), own in (share(), share()), other in (share(), share()),
        more in (share(), share()),
    ) {
        let model = ContentionModel::default();
        let own = profile("own", own.0, own.1);
        let heavier = profile("b", other.0.max(more.0), other.1.max(more.1));
        let other = profile("a", other.0, other.1);
        let kept = model.retention(&own, &other, mechanism);
        prop_assert!(kept > 0.0 && kept <= 1.0);
        prop_assert!(model.retention(&own, &heavier, mechanism) <= kept);
    }

    #[test]
    fn both_of_a_pair_are_judged_by_the_same_rule_and_an_idle_partner_is_not_felt(
        mechanism in mechanism(), one in (share(), share()), other in (share(), share()),
    ) {
        let model = ContentionModel::default();
        let (one, other) = (profile("a", one.0, one.1), profile("b", other.0, other.1));
        let (first, second) = model.pair(&one, &other, mechanism);
        prop_assert_eq!(model.pair(&other, &one, mechanism), (second, first));
        prop_assert_eq!(model.retention(&one, &profile("idle", 0.0, 0.0), mechanism), 1.0);
    }

    #[test]
    fn predictions_are_as_good_as_asked_for(seed in any::<u64>(), wanted in 0.5..0.99_f64) {
        let model = ContentionModel::default();
        let catalogue = built_in_profiles();
        let (truth, _) = RetentionMatrix::truth(&catalogue, None, &model, Mechanism::Mps);
        let (estimate, reached) = truth.estimated(wanted, seed);
        prop_assert!((reached - wanted).abs() < 0.01, "{} for {}", reached, wanted);
        prop_assert!((estimate.r_squared(&truth) - reached).abs() < 1e-9);
        prop_assert!(estimate.as_rows().flatten().all(|value| (1..=1_000_000).contains(value)));
        prop_assert_eq!(truth.estimated(wanted, seed), (estimate, reached));
    }

    #[test]
    fn predicted_slowdowns_are_as_wrong_as_asked_for(seed in any::<u64>(), wanted in 0.01..0.8_f64) {
        let model = ContentionModel::default();
        let (truth, _) = RetentionMatrix::truth(&built_in_profiles(), None, &model, Mechanism::Mps);
        let (estimate, reached) = truth.estimated_slowdown(wanted, seed);
        prop_assert!((reached - wanted).abs() < 1e-4, "{} for {}", reached, wanted);
        prop_assert!((estimate.slowdown_error(&truth) - reached).abs() < 1e-12);
        prop_assert!(estimate.as_rows().flatten().all(|value| (1..=1_000_000).contains(value)));
        prop_assert_eq!(truth.estimated_slowdown(wanted, seed), (estimate, reached));
    }

    #[test]
    fn percentiles_are_of_errors_like_those_used_but_not_of_them(
        seed in 0..1_000_u64, by_r2 in any::<bool>(),
    ) {
        let quality = match by_r2 {
            true => PredictionQuality::RSquared(0.902),
            false => PredictionQuality::SlowdownError(0.05),
        };
        let model = ContentionModel::default();
        let (truth, _) = RetentionMatrix::truth(&built_in_profiles(), None, &model, Mechanism::Mps);
        let percentiles = truth.error_percentiles(quality, seed);
        prop_assert_eq!(percentiles.len(), 101);
        prop_assert!(percentiles.is_sorted());
        prop_assert_eq!(&percentiles, &truth.error_percentiles(quality, seed));
        // Nine in ten errors of the predictions that are used are within the ninth decile, about.
        let (estimate, _) = truth.predicted(quality, seed);
        let slowdown = |ppm: &u32| 1e6 / f64::from(*ppm);
        let pairs = truth.as_rows().flatten().zip(estimate.as_rows().flatten());
        let errors: Vec<f64> = pairs.map(|(t, e)| slowdown(t) - slowdown(e)).collect();
        let within = errors.iter().filter(|e| **e * 1e6 <= f64::from(percentiles[90])).count();
        let share = within as f64 / errors.len() as f64;
        prop_assert!((0.82..=0.98).contains(&share), "{}", share);
        let largest = errors.iter().copied().fold(0.0, f64::max);
        prop_assert!((largest * 1e6 - f64::from(percentiles[100])).abs() > 1.0, "drawn apart");
    }
}

#[test]
fn two_saturating_jobs_halve_each_other_when_they_take_turns() {
    let model = ContentionModel::default();
    let busy = profile("busy", 1.0, 0.9);
    assert_eq!(model.pair(&busy, &busy, Mechanism::TimeSlicing), (0.5, 0.5));
    let Coefficients { own, other, .. } = model.mps;
    assert!(own > 0.0 && other > 0.0);
}

#[test]
fn the_truth_is_the_table_where_it_has_the_pair_and_the_model_elsewhere() {
    let catalogue = Catalogue::new(vec![
        profile("c", 0.9, 0.6),
        profile("a", 0.4, 0.2),
        profile("b", 0.7, 0.5),
    ]);
    let text = "model_a,dataset_a,batch_a,amp_a,retention_a,model_b,dataset_b,batch_b,amp_b,\
                retention_b\na,,1,0,1.2,b,,1,0,0.6\nb,,1,0,0,b,,1,0,0\n";
    let table = read_pairs_from("t.csv", text.as_bytes(), &PairOptions::default()).unwrap();
    let model = ContentionModel::default();
    let slicing = Mechanism::TimeSlicing;
    let (truth, coverage) = RetentionMatrix::truth(&catalogue, Some(&table), &model, slicing);
    let [a, b, c] = [0, 1, 2].map(ProfileClassId);
    assert_eq!((truth.get(a, b), truth.get(b, a)), (1_000_000, 600_000));
    // 1 / (1 + 0.4 · 0.9) and 1 / (1 + 0.9 · 0.9).
    assert_eq!((truth.get(a, c), truth.get(c, c)), (735_294, 552_486));
    assert_eq!(coverage.of(a, b), PairSource::Table);
    assert_eq!(coverage.of(a, a), PairSource::Model);
    assert_eq!(coverage.does_not_fit(), [(b, b)]);
    assert_eq!(
        [PairSource::Table, PairSource::Model, PairSource::DoesNotFit].map(|s| coverage.count(s)),
        [2, 6, 1]
    );
    assert_eq!((coverage.is_unmeasured(a), coverage.is_unmeasured(c)), (false, true));
    assert!((coverage.table_share() - 2.0 / 9.0).abs() < 1e-12);
    let rows: Vec<Vec<u32>> = truth.as_rows().map(<[u32]>::to_vec).collect();
    assert_eq!(RetentionMatrix::from_rows(&rows), Ok(truth));
}

#[test]
fn a_perfect_prediction_is_the_truth_and_one_without_variation_stays_it() {
    let model = ContentionModel::default();
    let (truth, _) = RetentionMatrix::truth(&built_in_profiles(), None, &model, Mechanism::Mps);
    assert_eq!(truth.estimated(1.0, 3), (truth.clone(), 1.0));
    let same = RetentionMatrix::from_rows(&[vec![500_000; 2], vec![500_000; 2]]).unwrap();
    assert_eq!(same.estimated(0.5, 3), (same.clone(), 1.0));
    let (nobody, _) = RetentionMatrix::truth(&Catalogue::default(), None, &model, Mechanism::Mps);
    assert_eq!((nobody.classes(), nobody.estimated(0.9, 1)), (0, (nobody.clone(), 1.0)));
}

#[test]
fn without_errors_slowdowns_are_the_truth_and_clamping_can_only_keep_errors_small() {
    let model = ContentionModel::default();
    let (truth, _) = RetentionMatrix::truth(&built_in_profiles(), None, &model, Mechanism::Mps);
    assert_eq!(truth.estimated_slowdown(0.0, 3), (truth.clone(), 0.0));
    for perfect in [PredictionQuality::SlowdownError(0.0), PredictionQuality::RSquared(1.0)] {
        assert_eq!(truth.error_percentiles(perfect, 3), vec![0; 101]);
    }
    let (nobody, _) = RetentionMatrix::truth(&Catalogue::default(), None, &model, Mechanism::Mps);
    let wrong = PredictionQuality::SlowdownError(0.5);
    assert_eq!(nobody.error_percentiles(wrong, 1), Vec::<i32>::new());
    assert_eq!(nobody.estimated_slowdown(0.5, 1), (nobody.clone(), 0.0));
    // Nobody is felt; a guess below 1 becomes 1, so half of the seeds get no error at all.
    let alone = RetentionMatrix::from_rows(&[vec![1_000_000]]).unwrap();
    let reached: Vec<f64> = (0..40).map(|seed| alone.estimated_slowdown(0.5, seed).1).collect();
    assert!(reached.iter().all(|mae| *mae == 0.0 || (mae - 0.5).abs() < 1e-5), "{reached:?}");
    assert!(reached.contains(&0.0) && reached.iter().any(|mae| *mae > 0.0));
}

#[test]
fn rows_that_are_no_retentions_are_refused() {
    let not_square = RetentionMatrix::from_rows(&[vec![1, 2]]).unwrap_err().to_string();
    assert!(not_square.contains("row 0 has 2 values for 1 profiles"), "{not_square}");
    let zero = RetentionMatrix::from_rows(&[vec![0]]).unwrap_err().to_string();
    assert!(zero.contains("0 in row 0, column 0 is no retention"), "{zero}");
}

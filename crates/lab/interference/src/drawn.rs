//! Profiles for traces that have none: a catalogue of our own, and a seeded draw from it.
//!
//! The figures are plausible ones for a data-centre GPU of 40 GiB or less, not measurements. The
//! weights give small jobs mostly light profiles and large gangs mostly heavy ones; weighted by
//! the GPU-hours of Helios Venus the mean compute share is about 60 %.

use crate::catalogue::Catalogue;
use crate::random::stream;
use crate::workload::{Profile, Workload};
use deepshare_model::ProfileClassId;
use deepshare_trace::Trace;
use rand::RngExt;

/// Purpose of the stream from which profiles are drawn.
const PURPOSE: u64 = 0x5052_4f46;

/// How much a profile asks of a device.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Weight {
    Light,
    Medium,
    Heavy,
}

/// Model, data set, batch, mixed precision, compute and bandwidth in per cent, memory in MiB.
type Entry = (Weight, &'static str, &'static str, u32, bool, f64, f64, u32);

use Weight::{Heavy, Light, Medium};
const BUILT_IN: [Entry; 20] = [
    (Light, "tabular-mlp", "clicks", 4096, false, 8.0, 3.0, 1_800),
    (Light, "policy-gradient", "simulator", 256, false, 12.0, 2.0, 1_900),
    (Light, "point-cloud-classifier", "shapes", 32, false, 14.0, 8.0, 3_600),
    (Light, "two-tower-recommender", "clicks", 8192, false, 20.0, 12.0, 4_200),
    (Light, "small-cnn", "thumbnails", 64, false, 26.0, 11.0, 2_200),
    (Light, "small-cnn", "thumbnails", 64, true, 21.0, 8.0, 2_100),
    (Light, "keyword-spotter", "speech-clips", 128, false, 30.0, 14.0, 2_600),
    (Medium, "mobile-cnn", "photos", 64, true, 42.0, 17.0, 3_000),
    (Medium, "mobile-cnn", "photos", 64, false, 55.0, 27.0, 3_900),
    (Medium, "graph-network", "citations", 512, false, 47.0, 30.0, 5_200),
    (Medium, "image-gan", "faces", 64, false, 62.0, 30.0, 4_400),
    (Medium, "sequence-tagger", "news", 64, true, 58.0, 26.0, 6_100),
    (Medium, "segmenter", "street-scenes", 8, true, 65.0, 36.0, 8_000),
    (Heavy, "residual-cnn", "photos", 128, true, 72.0, 44.0, 8_400),
    (Heavy, "residual-cnn", "photos", 128, false, 88.0, 58.0, 12_800),
    (Heavy, "detector", "street-scenes", 16, false, 70.0, 42.0, 11_000),
    (Heavy, "speech-encoder", "audio-books", 32, true, 78.0, 46.0, 10_200),
    (Heavy, "translator", "parallel-text", 128, true, 84.0, 52.0, 9_600),
    (Heavy, "text-encoder", "web-text", 64, true, 90.0, 60.0, 13_500),
    (Heavy, "text-decoder", "web-text", 16, true, 94.0, 66.0, 15_000),
];

/// Chances of light and medium profiles in per cent, for gangs of up to so many GPUs; the rest is
/// heavy.
const CHANCES: [(u32, u32, u32); 4] = [(1, 60, 27), (4, 40, 35), (8, 22, 34), (u32::MAX, 14, 30)];

/// The built-in profiles, by workload.
pub fn built_in_profiles() -> Catalogue {
    Catalogue::new(BUILT_IN.iter().map(profile).collect())
}

/// A profile for each job of `trace`, and the catalogue they are of.
pub(crate) fn draw(trace: &Trace, seed: u64) -> (Catalogue, Vec<ProfileClassId>) {
    let catalogue = built_in_profiles();
    let class = |entry| catalogue.find(&profile(entry).workload).expect("made of these");
    let of_weight = |weight: Weight| -> Vec<ProfileClassId> {
        BUILT_IN.iter().filter(|entry| entry.0 == weight).map(class).collect()
    };
    let (light, medium, heavy) = (of_weight(Light), of_weight(Medium), of_weight(Heavy));
    let mut rng = stream(seed, PURPOSE);
    let mut of_job = Vec::with_capacity(trace.jobs.len());
    for job in &trace.jobs {
        let chances = CHANCES.iter().find(|(most, ..)| job.gpus <= *most);
        let &(_, for_light, for_medium) = chances.expect("the last row is for all");
        let drawn: u32 = rng.random_range(0..100);
        let from = if drawn < for_light {
            &light
        } else if drawn < for_light + for_medium {
            &medium
        } else {
            &heavy
        };
        of_job.push(from[rng.random_range(0..from.len() as u32) as usize]);
    }
    (catalogue, of_job)
}

fn profile(entry: &Entry) -> Profile {
    let &(_, model, dataset, batch, mixed_precision, compute, bandwidth, memory_mib) = entry;
    Profile {
        workload: Workload {
            model: model.to_owned(),
            dataset: dataset.to_owned(),
            batch,
            mixed_precision,
        },
        compute: compute / 100.0,
        bandwidth: bandwidth / 100.0,
        memory_mib,
        throughput: None,
        training: None,
    }
}

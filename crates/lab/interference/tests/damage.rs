//! Damaged files: a reader answers with a result or with an error that names the file.

use deepshare_interference::{
    PairOptions, read_configurations_from, read_pairs_from, read_profiles_from,
};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use std::io::Cursor;

const CASES: u64 = 1_500;
const TOKENS: [&[u8]; 16] = [
    b",",
    b"\n",
    b"\"",
    b"-",
    b"1e999",
    b"NaN",
    b"99999999999999999999",
    b"\xff",
    b"\0",
    b"{",
    b"}",
    b"[",
    b"null",
    b"retention_a",
    b"(2",
    b"/",
];

fn damaged(original: &[u8], rng: &mut Pcg64Mcg) -> Vec<u8> {
    let mut bytes = original.to_vec();
    for _ in 0..rng.random_range(1..4_u32) {
        let at = rng.random_range(0..bytes.len() as u32 + 1) as usize;
        let end = (at + rng.random_range(0..12_u32) as usize).min(bytes.len());
        let token = TOKENS[rng.random_range(0..TOKENS.len() as u32) as usize];
        bytes.splice(at..end, token.iter().copied());
    }
    bytes
}

#[test]
fn no_damage_makes_a_reader_panic_or_forget_the_file() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let mut refused = 0;
    for name in ["own.csv", "lucid.csv", "blox.csv", "gavel.json", "profiles.csv", "pool.csv"] {
        let original = std::fs::read(folder.join(name)).unwrap();
        for seed in 0..CASES {
            let bytes = damaged(&original, &mut Pcg64Mcg::seed_from_u64(seed));
            let options = PairOptions { gpu_type: Some("k80".to_owned()), format: None };
            let why = match name {
                "profiles.csv" => read_profiles_from(name, Cursor::new(bytes)).err(),
                "pool.csv" => read_configurations_from(name, Cursor::new(bytes)).err(),
                _ => read_pairs_from(name, &bytes, &options).err(),
            };
            if let Some(why) = why {
                refused += 1;
                assert!(why.to_string().contains(name), "{name}, seed {seed}: {why}");
            }
        }
    }
    assert!(refused > CASES, "damage is noticed: {refused}");
}

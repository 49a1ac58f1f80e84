//! Quantities as Kubernetes reads and writes them.

use super::{Quantity, QuantityError, base_units, format_amount};

fn quantity(text: &str) -> Quantity {
    text.parse().unwrap()
}

#[test]
fn every_suffix_and_exponent_reads_as_kubernetes_reads_it() {
    let cases = [
        ("0", 0),
        ("12", 12),
        ("+3", 3),
        ("1k", 1_000),
        ("1M", 1_000_000),
        ("1G", 1_000_000_000),
        ("1T", 1_000_000_000_000),
        ("1P", 1_000_000_000_000_000),
        ("1E", 1_000_000_000_000_000_000),
        ("1Ki", 1 << 10),
        ("1Mi", 1 << 20),
        ("1.5Gi", 3 << 29),
        ("1Ti", 1 << 40),
        ("1Pi", 1 << 50),
        ("1Ei", 1 << 60),
        ("1e3", 1_000),
        ("1E3", 1_000),
        ("2.5e1", 25),
        ("1000000e-6", 1),
        (".5k", 500),
        ("5.", 5),
        // Rounded up to whole units.
        ("100m", 1),
        ("1u", 1),
        ("1n", 1),
        ("0.0000000000001", 1),
        // Beyond what Kubernetes holds.
        ("100E", i64::MAX as u64),
        ("99999999999999999999999999999999999999999999", i64::MAX as u64),
        ("1e400", i64::MAX as u64),
        ("0e400", 0),
        ("1e-400", 1),
    ];
    for (text, units) in cases {
        assert_eq!(quantity(text).as_units(), Ok(units), "{text}");
    }
}

#[test]
fn cpu_counts_thousandths_rounded_up() {
    for (text, milli) in
        [("2", 2_000), ("1500m", 1_500), ("0.1", 100), ("100u", 1), ("1.0001", 1_001)]
    {
        assert_eq!(base_units("cpu", quantity(text)), Ok(milli), "{text}");
    }
}

#[test]
fn what_is_not_a_quantity_is_refused_with_an_example() {
    for text in ["", "-", ".", "1.2.3", "1 Gi", "Gi", "1gi", "1K", "1e", "0x10", "1Gi ", "½"] {
        let error = text.parse::<Quantity>().unwrap_err();
        assert!(error.to_string().contains("as in `500m`"), "{text}: {error}");
    }
}

#[test]
fn a_negative_quantity_is_no_amount() {
    let debt = quantity("-1500m");
    assert_eq!(debt.to_string(), "-1500m");
    assert_eq!(debt.as_milli(), Err(QuantityError::Negative(debt)));
}

#[test]
fn an_amount_is_written_back_as_it_was_meant() {
    for (name, text) in [
        ("cpu", "1500m"),
        ("cpu", "2"),
        ("memory", "1536Mi"),
        ("memory", "2Gi"),
        ("memory", "1001"),
        ("memory", "0"),
        ("hugepages-2Mi", "4Mi"),
        ("deepshare.io/gpu", "8"),
        ("example.com/fast-nic", "1024"),
    ] {
        let amount = base_units(name, quantity(text)).unwrap();
        assert_eq!(format_amount(name, amount), text, "{name}");
    }
}

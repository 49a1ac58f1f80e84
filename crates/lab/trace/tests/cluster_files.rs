//! Cluster files, sound and not.

use deepshare_model::{GpuTypeId, Span, TenantId};
use deepshare_trace::{Cluster, ClusterOptions, TraceError, read_cluster, read_cluster_from};
use std::io::Cursor;
use std::path::Path;

fn fixture(name: &str) -> Cluster {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name);
    read_cluster(&path, ClusterOptions::default()).expect("the fixture is sound")
}

fn parse(text: &str) -> Result<Cluster, TraceError> {
    read_cluster_from("c.toml", Cursor::new(text.to_owned()), ClusterOptions::default())
}

fn message(text: &str) -> String {
    parse(text).expect_err("the file is bad").to_string()
}

#[test]
fn virtual_clusters_become_partitions_with_a_quota_of_their_nodes() {
    let cluster = fixture("vc_config.csv");
    assert_eq!(cluster.tenant_names(), ["vision", "speech"]);
    let names: Vec<_> = cluster.nodes.iter().map(|node| node.name.as_str()).collect();
    assert_eq!(names, ["vision-0", "vision-1", "speech-0"]);
    assert_eq!(cluster.tenants[0].quota.total(), 16);
    assert_eq!(cluster.nodes[2].tenant, Some(TenantId(1)));
    let input = Cursor::new("vc,num\na,3\n");
    let small = read_cluster_from("v.csv", input, ClusterOptions { gpus_per_node: 4 }).unwrap();
    assert_eq!(small.gpus(), 12);
}

#[test]
fn a_cluster_file_describes_nodes_and_a_tree_of_tenants() {
    let cluster = fixture("cluster.toml");
    assert_eq!(cluster.gpu_types, ["A100", "L40S"]);
    let names: Vec<_> = cluster.nodes.iter().map(|node| node.name.as_str()).collect();
    assert_eq!(names, ["a100-0", "a100-1", "spare"]);
    let node = &cluster.nodes[1];
    assert_eq!((node.gpus, node.gpu_memory_mib), (8, 81_920));
    assert_eq!((node.cpu_milli, node.memory_mib), (Some(96_000), Some(1_031_000)));
    assert_eq!((node.tenant, cluster.nodes[2].tenant), (Some(TenantId(1)), None));
    let [research, vision, speech] = cluster.tenants.as_slice() else { panic!("{cluster:?}") };
    assert_eq!((vision.parent, speech.parent), (Some(TenantId(0)), Some(TenantId(0))));
    assert_eq!((vision.best_effort_milli, vision.lending_limit), (1_500, Some(8)));
    assert_eq!(vision.min_run_time, Span::from_secs(600));
    assert_eq!((speech.best_effort_milli, speech.lending_limit), (2_000, None));
    let of = |tenant: &deepshare_trace::TenantEntry| {
        [0, 1].map(|number| tenant.quota.of(GpuTypeId(number)))
    };
    // Given; of its own nodes; of its children.
    assert_eq!([of(speech), of(vision), of(research)], [[0, 4], [16, 0], [16, 4]]);
}

#[test]
fn without_tenant_tables_the_nodes_name_the_tenants() {
    let cluster = parse("[[node]]\ngpus = 8\ntenant = \"b\"\n[[node]]\ngpus = 2\ntenant = \"a\"\n");
    let cluster = cluster.unwrap();
    assert_eq!(cluster.tenant_names(), ["b", "a"]);
    assert_eq!(cluster.tenants[0].quota.total(), 8);
    assert!(parse("[[node]]\ngpus = 8\n").unwrap().tenants.is_empty());
}

#[test]
fn one_number_is_a_quota_where_there_is_one_gpu_type() {
    let node = "[[node]]\ngpus = 8\n[[tenant]]\nname = \"a\"\nquota = 64\n";
    assert_eq!(parse(node).unwrap().tenants[0].quota.total(), 64);
    let two = message(&format!("{node}[[node]]\ngpus = 1\ngpu_type = \"A100\"\n"));
    assert!(two.contains("line 5, column 9") && two.contains("2 GPU types"), "{two}");
}

#[test]
fn all_problems_of_a_cluster_file_are_named_with_their_places() {
    let message = message(
        "[[node]]\ngpus = 65\ncolour = \"red\"\ntenant = \"ghost\"\n\
         [[node]]\nname = 3\n\
         [[tenant]]\nname = \"a\"\nparent = \"a\"\nquota = { V100 = 1 }\n\
         [[tenant]]\nname = \"a\"\nlending_limit = -1\nbest_effort_multiple = nan\n\
         [[tennant]]\n",
    );
    for part in [
        "c.toml: 11 problems",
        "line 2, column 8: gpus = 65 is not possible; give a whole number from 1 to 64",
        "line 3, column 1: unknown key \"colour\" in [[node]]",
        "line 4, column 10: there is no tenant \"ghost\"",
        "line 5, column 1: a node has no gpus",
        "line 6, column 8: name = 3 is not a string",
        "line 9, column 10: tenant \"a\" is its own ancestor",
        "names the GPU type \"V100\", which no node has",
        "tenant \"a\" is described twice",
        "line 13, column 17: lending_limit = -1 is not possible",
        "line 14, column 24: best_effort_multiple",
        "unknown table \"tennant\"",
    ] {
        assert!(message.contains(part), "{part} is not in: {message}");
    }
}

#[test]
fn circles_of_parents_are_refused() {
    let text = "[[node]]\ngpus = 1\n[[tenant]]\nname = \"a\"\nparent = \"b\"\n\
                [[tenant]]\nname = \"b\"\nparent = \"a\"\n\
                [[tenant]]\nname = \"c\"\nparent = \"a\"\n";
    let message = message(text);
    assert!(message.contains("2 problems") && message.contains("line 5"), "{message}");
}

#[test]
fn files_that_describe_no_cluster_are_refused() {
    for (text, part) in [
        ("", "the file is empty"),
        ("# nothing\n", "there is no node"),
        ("[[node]\ngpus = 1\n", "line 1, column"),
        ("node = 3\n", "node is not a list of tables"),
        ("a,b\n1,2\n", "neither a cluster file in TOML nor a table"),
        ("vc,num\n", "0 nodes in all"),
        ("vc,num\na,1\na,2\n", "\"a\" is on line 2 too"),
        ("vc,num\na,-1\nb,x\n", "2 problems"),
        ("vc,num\na,1e9\n", "above the limit"),
        ("[[node]]\nname = \"n\"\ngpus = 1\n[[node]]\nname = \"n\"\ngpus = 1\n", "a second node"),
        ("[[node]]\ngpus = 1\nname = \"a\\nb\"\n", "line 3, column 8: name = "),
        ("[[node]]\ngpus = 1\ncount = 1000001\n", "from 1 to 1000000"),
    ] {
        let message = message(text);
        assert!(message.starts_with("c.toml: ") && message.contains(part), "{part}: {message}");
    }
}

//! Every rule of a node check, a case each.

use super::*;
use crate::sites::Why;

const ANY: i64 = -1;
const HOST: &str = "kubernetes.io/hostname";

#[test]
fn a_node_that_is_not_ready_cordoned_or_tainted_takes_only_who_tolerates_it() {
    let mut unready = node(1, json!({}));
    unready["status"]["conditions"][0]["status"] = json!("Unknown");
    let mut cordoned = node(2, json!({}));
    cordoned["spec"]["unschedulable"] = json!(true);
    let mut tainted = node(3, json!({}));
    tainted["spec"]["taints"] = json!([{"key": "gpu", "value": "a", "effect": "NoSchedule"}]);
    let mut sites = Sites::with(&[unready, cordoned, tainted]);

    assert_eq!(sites.room(&pod("a", json!({}), json!({}))), [0, 0, 0]);
    let tolerant = json!({"tolerations": [{"operator": "Exists"}]});
    assert_eq!(sites.room(&pod("b", json!({}), tolerant)), [0, ANY, ANY], "readiness is no taint");
    let some = json!({"tolerations": [{"key": "gpu", "operator": "Exists"}]});
    assert_eq!(sites.room(&pod("c", json!({}), some)), [0, 0, ANY]);
}

#[test]
fn node_selector_and_required_affinity_must_both_hold() {
    let mut sites = Sites::with(&[
        node(1, json!({"zone": "a", "disk": "ssd"})),
        node(2, json!({"zone": "b", "disk": "ssd"})),
        node(3, json!({"zone": "a"})),
    ]);
    let both = json!({"nodeSelector": {"disk": "ssd"}, "affinity": {"nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
            {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}]}}}});
    assert_eq!(sites.room(&pod("a", json!({}), both)), [ANY, 0, 0]);
}

#[test]
fn places_for_pods_run_out_and_pods_of_others_take_them_too() {
    let mut small = node(1, json!({}));
    small["status"]["allocatable"]["pods"] = json!("3");
    let mut sites = Sites::with(&[small]);
    let asked = pod("a", json!({}), json!({}));
    assert_eq!(sites.room(&asked), [3]);
    sites.bind(&pod("log-agent", json!({}), json!({"containers": [{"name": "main"}]})), 1);
    assert_eq!(sites.room(&asked), [2]);
    sites.apply(Change::PodGone("log-agent"));
    assert_eq!(sites.room(&asked), [3]);
}

#[test]
fn other_resources_are_counted_whatever_their_name() {
    let mut first = node(1, json!({}));
    merge(
        &mut first["status"]["allocatable"],
        json!({
        "ephemeral-storage": "100Gi", "hugepages-2Mi": "8Mi", "example.com/nic": "4"}),
    );
    let mut sites = Sites::with(&[first, node(2, json!({}))]);
    let asking = |name: &str, resource: &str, amount: &str| {
        pod(
            name,
            json!({}),
            json!({"containers": [{"name": "main", "resources": {"requests": {
            "deepshare.io/gpu": "1", resource: amount}}}]}),
        )
    };
    assert_eq!(sites.room(&asking("a", "ephemeral-storage", "30Gi")), [3, 0]);
    assert_eq!(sites.room(&asking("b", "hugepages-2Mi", "16Mi")), [0, 0]);
    let nic = asking("c", "example.com/nic", "2");
    assert_eq!(sites.room(&nic), [2, 0]);
    sites.bind(&nic, 1);
    assert_eq!(sites.room(&asking("d", "example.com/nic", "2")), [1, 0]);
}

#[test]
fn a_host_port_is_taken_on_its_address_and_on_all_when_none_is_given() {
    let listening = |name: &str, ip: &str, protocol: &str| {
        pod(
            name,
            json!({}),
            json!({"containers": [{"name": "main",
            "resources": {"requests": {"deepshare.io/gpu": "1"}},
            "ports": [{"containerPort": 80, "hostPort": 80, "hostIP": ip, "protocol": protocol}]}]}),
        )
    };
    let mut sites = Sites::with(&[node(1, json!({})), node(2, json!({}))]);
    assert_eq!(sites.room(&listening("a", "", "TCP")), [1, 1]);
    sites.bind(&listening("a", "10.0.0.1", "TCP"), 1);
    for (ip, protocol, expected) in [
        ("10.0.0.1", "TCP", [0, 1]),
        ("10.0.0.2", "TCP", [1, 1]),
        ("0.0.0.0", "TCP", [0, 1]),
        ("", "UDP", [1, 1]),
    ] {
        assert_eq!(sites.room(&listening("b", ip, protocol)), expected, "{ip} {protocol}");
    }
}

#[test]
fn anti_affinity_keeps_a_pod_away_from_others_of_its_kind() {
    let mut sites = Sites::with(&[
        node(1, json!({"zone": "a"})),
        node(2, json!({"zone": "a"})),
        node(3, json!({"zone": "b"})),
    ]);
    let own = json!({"app": "web"});
    let by_host = pod("h", own.clone(), anti_affinity(HOST, own.clone()));
    let by_zone = pod("z", own.clone(), anti_affinity("zone", own.clone()));
    assert_eq!(sites.room(&by_host), [1, 1, 1], "one of itself on each");
    sites.bind(&pod("web", own, json!({})), 1);
    assert_eq!(sites.room(&by_host), [0, 1, 1]);
    assert_eq!(sites.room(&by_zone), [0, 0, 1]);
    sites.put(2, &node(2, json!({"zone": "b"})));
    assert_eq!(sites.room(&by_zone), [0, 1, 1], "a node that moved to another zone");
}

#[test]
fn anti_affinity_of_a_pod_that_is_there_counts_against_newcomers() {
    let mut sites = Sites::with(&[node(1, json!({"zone": "a"})), node(2, json!({"zone": "a"}))]);
    let victim = pod("v", json!({"app": "noisy"}), json!({}));
    sites.bind(&pod("quiet", json!({}), anti_affinity("zone", json!({"app": "noisy"}))), 1);
    assert_eq!(sites.room(&victim), [0, 0]);
    assert_eq!(sites.room(&pod("o", json!({"app": "other"}), json!({}))), [ANY, ANY]);
    sites.apply(Change::PodGone("quiet"));
    assert_eq!(sites.room(&victim), [ANY, ANY]);
}

#[test]
fn a_check_knows_anti_affinity_that_came_up_after_the_site_was_made() {
    let mut sites = Sites::with(&[node(1, json!({"zone": "a"}))]);
    let noisy = pod("n", json!({"app": "noisy"}), json!({}));
    assert_eq!(sites.room(&noisy), [ANY]);
    sites.bind(&pod("quiet", json!({}), anti_affinity("zone", json!({"app": "noisy"}))), 1);
    let why = sites.check(NodeId(1), &read(&noisy)).unwrap_err();
    assert_eq!(why, Why::AntiAffinityOfOthers { topology_key: "zone".into() });
}

#[test]
fn affinity_needs_a_pod_near_unless_the_pod_is_the_first_of_its_own_kind() {
    let zones = [node(1, json!({"zone": "a"})), node(2, json!({"zone": "b"})), node(3, json!({}))];
    let mut sites = Sites::with(&zones);
    let data = json!({"app": "data"});
    let stranger = pod("s", json!({}), required("podAffinity", "zone", data.clone()));
    let own = pod("o", data.clone(), required("podAffinity", "zone", data.clone()));
    assert_eq!(sites.room(&stranger), [0, 0, 0]);
    assert_eq!(sites.room(&own), [ANY, ANY, 0], "a node in no zone is near nobody");
    sites.bind(&pod("d", data, json!({})), 2);
    assert_eq!(sites.room(&stranger), [0, ANY, 0]);
    assert_eq!(sites.room(&own), [0, ANY, 0]);
}

#[test]
fn a_pod_is_near_only_if_it_meets_every_affinity_term_at_once() {
    let mut sites = Sites::with(&[node(1, json!({"zone": "a"}))]);
    let term = |label: &str| json!({"topologyKey": "zone", "labelSelector": {"matchLabels": {label: "yes"}}});
    let both = pod(
        "p",
        json!({}),
        json!({"affinity": {"podAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [term("left"), term("right")]}}}),
    );
    sites.bind(&pod("l", json!({"left": "yes"}), json!({})), 1);
    sites.bind(&pod("r", json!({"right": "yes"}), json!({})), 1);
    assert_eq!(sites.room(&both), [0], "one pod each is not enough");
    sites.bind(&pod("b", json!({"left": "yes", "right": "yes"}), json!({})), 1);
    assert_eq!(sites.room(&both), [ANY]);
}

#[test]
fn a_spread_allows_what_stays_within_the_skew_of_the_emptiest_place() {
    let mut sites = Sites::with(&[
        node(1, json!({"zone": "a"})),
        node(2, json!({"zone": "a"})),
        node(3, json!({"zone": "b"})),
        node(4, json!({})),
    ]);
    let own = json!({"app": "web"});
    let asked = pod("x", own.clone(), spread(2, own.clone(), json!({})));
    assert_eq!(sites.room(&asked), [2, 2, 2, 0], "a node in no zone is out");
    sites.bind(&pod("w1", own.clone(), json!({})), 1);
    sites.bind(&pod("w2", own.clone(), json!({})), 2);
    assert_eq!(sites.room(&asked), [0, 0, 2, 0]);
    sites.bind(&pod("w3", own.clone(), json!({})), 3);
    assert_eq!(sites.room(&asked), [1, 1, 2, 0]);

    let mut leaving = pod("w3", own, json!({}));
    leaving["metadata"]["deletionTimestamp"] = json!("2026-05-01T10:00:00Z");
    sites.bind(&leaving, 3);
    assert_eq!(sites.room(&asked), [0, 0, 2, 0], "who is being deleted is not counted");
}

#[test]
fn a_spread_with_fewer_places_than_min_domains_counts_from_zero() {
    let mut sites = Sites::with(&[node(1, json!({"zone": "a"})), node(2, json!({"zone": "b"}))]);
    let own = json!({"app": "web"});
    let asked = pod("x", own.clone(), spread(1, own.clone(), json!({"minDomains": 3})));
    sites.bind(&pod("w1", own.clone(), json!({})), 1);
    sites.bind(&pod("w2", own, json!({})), 2);
    assert_eq!(sites.room(&asked), [0, 0]);
    sites.put(3, &node(3, json!({"zone": "c"})));
    assert_eq!(sites.room(&asked), [0, 0, 1], "the third zone is there, and empty");
}

#[test]
fn places_that_a_pod_cannot_go_to_count_in_its_spread_as_its_policies_say() {
    let own = json!({"app": "web"});
    let mut tainted = node(2, json!({"zone": "b", "disk": "ssd"}));
    tainted["spec"]["taints"] = json!([{"key": "k", "effect": "NoSchedule"}]);
    let nodes =
        [node(1, json!({"zone": "a", "disk": "ssd"})), tainted, node(3, json!({"zone": "c"}))];
    let room = |policies: Value| -> [i64; 3] {
        let mut sites = Sites::with(&nodes);
        sites.bind(&pod("w1", own.clone(), json!({})), 1);
        let mut spec = spread(1, own.clone(), policies);
        merge(&mut spec, json!({"nodeSelector": {"disk": "ssd"}}));
        sites.room(&pod("x", own.clone(), spec))
    };
    // By default the empty tainted zone counts and the empty excluded one does not.
    assert_eq!(room(json!({})), [0, 0, 0]);
    assert_eq!(room(json!({"nodeTaintsPolicy": "Honor"})), [1, 0, 0]);
    let both = json!({"nodeTaintsPolicy": "Honor", "nodeAffinityPolicy": "Ignore"});
    assert_eq!(room(both), [0, 0, 0], "the excluded zone is empty");
}

#[test]
fn a_pod_that_the_selector_of_its_spread_does_not_count_may_come_in_any_number() {
    let mut sites = Sites::with(&[node(1, json!({"zone": "a"})), node(2, json!({"zone": "b"}))]);
    let asked = pod("x", json!({}), spread(1, json!({"app": "web"}), json!({})));
    sites.bind(&pod("w", json!({"app": "web"}), json!({})), 1);
    assert_eq!(sites.room(&asked), [ANY, ANY]);
}

#[test]
fn rules_about_namespaces_follow_their_labels() {
    let mut sites = Sites::with(&[node(1, json!({"zone": "a"}))]);
    let away = pod(
        "x",
        json!({}),
        json!({"affinity": {"podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone",
            "labelSelector": {}, "namespaceSelector": {"matchLabels": {"team": "s"}}}]}}}),
    );
    let mut other = pod("s", json!({}), json!({}));
    other["metadata"]["namespace"] = json!("speech");
    sites.bind(&other, 1);
    assert_eq!(sites.room(&away), [ANY]);
    let labelled = json!({"metadata": {"name": "speech", "labels": {"team": "s"}}});
    sites.apply(Change::Namespace(&read(&labelled)));
    assert_eq!(sites.room(&away), [0]);
}

#[test]
fn a_check_counts_cpu_memory_and_gpus_of_everybody_with_those_assumed() {
    let mut sites = Sites::with(&[node(1, json!({}))]);
    let eats = |name: &str, cpu: &str, gpus: &str| {
        pod(
            name,
            json!({}),
            json!({"containers": [{"name": "main", "resources": {"requests": {
            "cpu": cpu, "deepshare.io/gpu": gpus}}}]}),
        )
    };
    sites.bind(&eats("a", "60", "6"), 1);
    assert_eq!(sites.check(NodeId(1), &read(&eats("b", "4", "2"))), Ok(()));
    let why = sites.check(NodeId(1), &read(&eats("b", "5", "2"))).unwrap_err();
    assert_eq!(why, Why::Resource { name: "cpu".into(), asked: 5000, free: 4000 });
    let why = sites.check(NodeId(1), &read(&eats("b", "1", "3"))).unwrap_err();
    assert_eq!(why.to_string(), "the pod asks for 3 of `deepshare.io/gpu`, and 2 are free");
    let why = sites.check(NodeId(1), &read(&eats("a", "1", "1"))).unwrap_err();
    assert_eq!(why, Why::Placed { on: "n1".into() });
    sites.apply(Change::NodeGone(NodeId(1)));
    assert_eq!(sites.check(NodeId(1), &read(&eats("b", "1", "1"))), Err(Why::NoNode));
}

#[test]
fn the_engine_gets_what_pods_of_others_leave_of_a_node() {
    let mut sites = Sites::with(&[node(1, json!({}))]);
    let eats = |name: &str| {
        pod(
            name,
            json!({}),
            json!({"containers": [{"name": "main", "resources": {"requests": {
            "cpu": "1500m", "memory": "1Gi"}}}]}),
        )
    };
    sites.bind(&eats("ours"), 1);
    let other: Pod = read(&eats("other"));
    sites.apply(Change::Pod { pod: &other, node: NodeId(1), ours: false });
    let free = sites.host_free(NodeId(1)).unwrap();
    assert_eq!((free.cpu_milli, free.memory_mib), (62_500, 511 * 1024));

    let mut over = eats("other");
    over["status"] = json!({"phase": "Succeeded"});
    sites.apply(Change::Pod { pod: &read(&over), node: NodeId(1), ours: false });
    assert_eq!(sites.host_free(NodeId(1)).unwrap().cpu_milli, 64_000);
    assert_eq!(sites.host_free(NodeId(9)), None);
}

#[test]
fn only_answers_that_are_different_are_reported() {
    let mut sites = Sites::with(&[node(1, json!({})), node(2, json!({}))]);
    let own = json!({"app": "web"});
    let asked = pod("x", own.clone(), anti_affinity(HOST, own.clone()));
    let (site, first) = sites.site(&read(&asked));
    let admitted: Vec<_> = first.iter().map(|one| (one.members, one.nodes.len())).collect();
    assert_eq!(admitted, [(1, 2)]);
    assert_eq!(sites.site(&read(&asked)), (site, vec![]), "known already");

    let bound: Pod = read(&pod("w", own, json!({})));
    let change = Change::Pod { pod: &bound, node: NodeId(2), ours: true };
    let different = sites.apply(change);
    assert_eq!(different.len(), 1);
    assert_eq!((different[0].site, different[0].members), (site, 0));
    assert_eq!(different[0].nodes, [NodeId(2)]);
    assert_eq!(sites.apply(change), [], "a doubled change changes nothing");
    assert_eq!(sites.apply(Change::Node(NodeId(1), &read(&node(1, json!({}))))), []);
}

//! Crates depend downwards only: each manifest states its layer in `[package.metadata.agentrt]`, and an edge
//! between two crates of the workspace goes from a higher layer to a lower one.

use std::collections::BTreeMap;
use std::process::Command;

use serde_json::{Value, json};

/// What is wrong with the workspace's layering, one line each.
fn violations(metadata: &Value) -> Vec<String> {
    let packages = array(&metadata["packages"]);
    let layers: BTreeMap<&str, Option<u64>> = packages
        .iter()
        .map(|package| {
            (
                name(package),
                package["metadata"]["agentrt"]["layer"].as_u64(),
            )
        })
        .collect();
    let mut found = Vec::new();
    for package in packages {
        let from = name(package);
        let Some(layer) = layers[from] else {
            found.push(format!("{from} states no layer"));
            continue;
        };
        for dependency in array(&package["dependencies"]) {
            let to = name(dependency);
            match layers.get(to) {
                Some(Some(below)) if *below >= layer => found.push(format!(
                    "{from} (layer {layer}) depends on {to} (layer {below})"
                )),
                _ => {}
            }
        }
    }
    found
}

fn array(value: &Value) -> &[Value] {
    value.as_array().expect("cargo metadata has an array here")
}

fn name(value: &Value) -> &str {
    value["name"].as_str().expect("cargo metadata names it")
}

#[test]
fn every_dependency_goes_down() {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--offline", "--format-version=1"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let metadata = serde_json::from_slice(&output.stdout).expect("cargo prints JSON");
    assert_eq!(violations(&metadata), Vec::<String>::new());
}

#[test]
fn edges_that_do_not_go_down_are_found() {
    let package = |name: &str, layer: Option<u64>, dependencies: &[&str]| {
        let dependencies: Vec<_> = dependencies
            .iter()
            .map(|name| json!({ "name": name }))
            .collect();
        json!({
            "name": name,
            "metadata": layer.map(|layer| json!({ "agentrt": { "layer": layer } })),
            "dependencies": dependencies,
        })
    };
    let metadata = json!({ "packages": [
        package("low", Some(0), &["serde", "high"]),
        package("beside", Some(1), &["level"]),
        package("level", Some(1), &["low"]),
        package("high", Some(2), &["level", "low"]),
        package("nowhere", None, &[]),
    ]});
    assert_eq!(
        violations(&metadata),
        [
            "low (layer 0) depends on high (layer 2)",
            "beside (layer 1) depends on level (layer 1)",
            "nowhere states no layer",
        ]
    );
}

//! What the documents name is there: every path and link of README.md and of the architecture's part on what
//! exists, and nothing of its part on what is planned.

use std::fs;
use std::path::{Path, PathBuf};

const ARCHITECTURE: &str = "docs/architecture.md";

/// The heading below which the architecture names what does not exist yet.
const PLANNED: &str = "\n## Planned\n";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn text(file: &str) -> String {
    fs::read_to_string(root().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

/// The paths of the project that a text sets in backticks: they have a slash, not at the start.
fn paths(text: &str) -> impl Iterator<Item = &str> {
    let is_path_character =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '-' | '_');
    text.split('`').skip(1).step_by(2).filter(move |span| {
        span.contains('/') && !span.starts_with('/') && span.chars().all(is_path_character)
    })
}

/// The targets of a text's links into the project.
fn links(text: &str) -> impl Iterator<Item = &str> {
    text.split("](")
        .skip(1)
        .filter_map(|rest| rest.split_once(')'))
        .map(|(target, _)| target)
        .filter(|target| !target.contains("://") && !target.starts_with('#'))
}

fn missing<'a>(directory: &str, names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let directory = root().join(directory);
    names
        .filter(|name| !directory.join(name).exists())
        .collect()
}

#[test]
fn architecture_names_what_exists() {
    let text = text(ARCHITECTURE);
    let (existing, planned) = text.split_once(PLANNED).expect("a part on what is planned");
    assert_eq!(missing("", paths(existing)), Vec::<&str>::new());
    assert_eq!(missing("docs", links(&text)), Vec::<&str>::new());
    let built: Vec<_> = paths(planned)
        .filter(|name| root().join(name).exists())
        .collect();
    assert_eq!(built, Vec::<&str>::new(), "exists, no longer planned");
}

#[test]
fn architecture_names_every_crate() {
    let text = text(ARCHITECTURE);
    let manifest = self::text("Cargo.toml");
    let members = manifest
        .split_once("members = [")
        .and_then(|(_, rest)| rest.split_once(']'))
        .map(|(members, _)| members.split('"').skip(1).step_by(2))
        .expect("a list of members");
    let unnamed: Vec<_> = members
        .filter(|member| !text.contains(&format!("`{member}`")))
        .collect();
    assert_eq!(unnamed, Vec::<&str>::new());
}

#[test]
fn readme_links_to_what_exists() {
    assert_eq!(missing("", links(&text("README.md"))), Vec::<&str>::new());
}

#[test]
fn readme_names_the_targets_of_the_makefile() {
    let makefile = text("Makefile");
    let readme = text("README.md");
    let unknown: Vec<_> = readme
        .split('`')
        .filter_map(|span| span.strip_prefix("make "))
        .filter(|target| !makefile.contains(&format!("\n{target}:")))
        .collect();
    assert_eq!(unknown, Vec::<&str>::new());
}

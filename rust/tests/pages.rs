//! The program of the page on Rust runs as it stands.

mod common;

use std::process::Command;

use common::Server;

#[test]
fn the_program_of_the_page_prints_what_the_page_says() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(folder.join("../docs/rust.md")).unwrap();
    let example = std::fs::read_to_string(folder.join("examples/orders.rs")).unwrap();
    let block = |kind: &str| page.split_once(&format!("```{kind}\n")).unwrap().1.split_once("```").unwrap().0.to_owned();
    assert_eq!(example.split_once("\n\n").unwrap().1, block("rust"), "examples/orders.rs is the program of the page");
    let server = Server::start();
    let program = std::env::current_exe().unwrap().with_file_name("../examples/orders");
    let printed = Command::new(program).arg(&server.url).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&printed.stdout), block("output"), "{}", String::from_utf8_lossy(&printed.stderr));
}

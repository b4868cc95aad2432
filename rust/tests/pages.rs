//! The programs of the page on Rust run as they stand.

mod common;

use std::process::Command;

use common::Server;

const EXAMPLES: [&str; 3] = ["orders", "mails", "watch"];

#[test]
fn the_programs_of_the_page_print_what_the_page_says() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(folder.join("../docs/rust.md")).unwrap();
    let blocks = |kind: &str| -> Vec<String> {
        let start = format!("```{kind}\n");
        let starts = page.split(start.as_str()).skip(1);
        starts.map(|rest| rest.split_once("```").unwrap().0.to_owned()).collect()
    };
    let (programs, outputs) = (blocks("rust"), blocks("output"));
    assert_eq!((programs.len(), outputs.len()), (EXAMPLES.len(), EXAMPLES.len()));
    for (name, (program, output)) in EXAMPLES.iter().zip(programs.iter().zip(&outputs)) {
        let example = std::fs::read_to_string(folder.join(format!("examples/{name}.rs"))).unwrap();
        assert_eq!(example.split_once("\n\n").unwrap().1, program, "examples/{name}.rs is a program of the page");
        let server = Server::start();
        let built = std::env::current_exe().unwrap().with_file_name(format!("../examples/{name}"));
        let printed = Command::new(built).arg(&server.url).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&printed.stdout), *output, "{}", String::from_utf8_lossy(&printed.stderr));
    }
}

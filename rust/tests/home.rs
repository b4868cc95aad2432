//! A client is used in the process and in the Tokio runtime that it connected in.

mod common;

use common::{Server, queue};
use leaseq::{ErrorKind, NewItem};
use tokio::runtime::{Builder, Runtime};

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().expect("a runtime")
}

#[test]
fn a_client_that_is_connected_in_another_runtime_is_refused() {
    let server = Server::start();
    let queue = queue(&server.client());
    let (first, second) = (runtime(), runtime());
    assert!(first.block_on(queue.add(NewItem::new("a", ""))).unwrap().is_new());
    let error = second.block_on(queue.add(NewItem::new("b", ""))).unwrap_err();
    assert_eq!((error.kind(), error.is_definite()), (&ErrorKind::OtherRuntime, true));
    assert!(first.block_on(queue.add(NewItem::new("b", ""))).unwrap().is_new());
}

#[test]
fn a_client_whose_runtime_has_ended_connects_in_the_next_one() {
    let server = Server::start();
    let queue = queue(&server.client());
    assert!(runtime().block_on(queue.add(NewItem::new("a", ""))).unwrap().is_new());
    assert!(runtime().block_on(queue.add(NewItem::new("b", ""))).unwrap().is_new());
}

#[test]
fn a_client_that_was_connected_before_a_fork_is_refused_in_the_child() {
    let server = Server::start();
    let client = server.client();
    let queue = queue(&client);
    let here = runtime();
    assert!(here.block_on(queue.add(NewItem::new("a", ""))).unwrap().is_new());
    match fork::fork().expect("a child") {
        fork::Fork::Child => {
            let error = here.block_on(queue.add(NewItem::new("b", ""))).unwrap_err();
            if *error.kind() == ErrorKind::OtherProcess {
                let own = server.client().queue(queue.name()).unwrap();
                let _ = runtime().block_on(own.add(NewItem::new("of the child", "")));
            }
            std::process::exit(0);
        }
        fork::Fork::Parent(child) => {
            fork::waitpid(child).expect("it ends");
            let found = here.block_on(queue.inspect(&["b", "of the child"])).unwrap();
            assert_eq!(found.iter().map(|each| each.created.is_some()).collect::<Vec<_>>(), [false, true]);
        }
    }
}

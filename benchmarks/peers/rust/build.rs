//! Tells the program which versions it is made of.

use std::process::Command;

fn main() {
    let lock = std::fs::read_to_string("Cargo.lock").unwrap_or_default();
    let version = lock.split("name = \"kafka-protocol\"\nversion = \"").nth(1);
    let version = version.and_then(|rest| rest.split('"').next()).unwrap_or("?");
    let rustc = std::env::var("RUSTC").unwrap_or("rustc".into());
    let said = Command::new(rustc).arg("--version").output().map(|one| one.stdout).unwrap_or_default();
    let said = String::from_utf8_lossy(&said);
    println!("cargo:rustc-env=PEER_CRATE={version}");
    println!("cargo:rustc-env=PEER_RUSTC={}", said.split(' ').nth(1).unwrap_or("?"));
    println!("cargo:rerun-if-changed=Cargo.lock");
}

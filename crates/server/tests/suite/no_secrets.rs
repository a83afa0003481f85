//! The dependency tree of the server holds nothing that could seal or open.

use std::process::Command;

#[test]
fn the_server_cannot_name_a_secret_key() {
    let options = ["--locked", "--offline", "--edges", "normal", "--prefix", "none"];
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--package", "ciphervec-server"])
        .args(options)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let tree = String::from_utf8(output.stdout).unwrap();
    let links = |package: &str| tree.lines().any(|line| line.starts_with(package));
    assert!(links("ciphervec ") && links("ciphervec-he "), "{tree}");
    for keys in ["ciphervec-he-secret ", "ciphervec-owner "] {
        assert!(!links(keys), "{tree}");
    }
    for banned in ["chacha20poly1305 ", "scrypt ", "hpke ", "aws-lc-rs ", "openssl "] {
        assert!(!links(banned), "{tree}");
    }
}

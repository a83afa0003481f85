//! The dependency tree of the server enters: it holds nothing that could seal or open.

use std::process::Command;

#[test]
fn the_server_cannot_name_a_secret_key() {
    let tree = |format: &str, edges: &str| {
        let output = Command::new(env!("CARGO"))
            .args([
                "tree",
                "--package",
                "ciphervec-server",
                "--locked",
                "--offline",
                "--prefix",
                "none",
            ])
            .args(["--edges", edges, "--format", format])
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let normal = tree("{p} [{f}]", "normal");
    let ours: Vec<&str> = normal.lines().filter(|line| line.starts_with("ciphervec")).collect();
    assert!(ours.iter().any(|line| line.starts_with("ciphervec ")), "{normal}");
    assert!(ours.iter().any(|line| line.starts_with("ciphervec-he ")), "{normal}");
    for line in &ours {
        let features = line.rsplit('[').next().unwrap().trim_end_matches([']', '(', '*', ')', ' ']);
        assert!(!features.split(',').any(|feature| feature == "client"), "{line}");
    }
    let secret = ["ciphervec-he-secret ", "chacha20poly1305 ", "scrypt ", "hpke "];
    for banned in secret.into_iter().chain(["aws-lc-rs ", "openssl "]) {
        let found: Vec<&str> = normal.lines().filter(|line| line.starts_with(banned)).collect();
        assert!(found.is_empty(), "{found:?}");
    }
}

//! The program itself, started by a test and ended with it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Output, Stdio};
use std::time::Duration;

pub const PROGRAM: &str = env!("CARGO_BIN_EXE_ciphervec-server");

pub struct Server {
    child: Child,
    /// `http://127.0.0.1:port`
    pub url: String,
    log: Option<BufReader<ChildStderr>>,
}

/// A test that fails leaves nothing running.
impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Server {
    pub fn start(data: &Path, extra: &[&str]) -> Self {
        let mut program = Command::new(PROGRAM);
        program.args(["serve", "--data", data.to_str().unwrap(), "--listen", "127.0.0.1:0"]);
        program.args(extra).env("CIPHERVEC_LOG", "warn");
        Self::spawn(program)
    }

    /// Runs a program, and waits until it says where it listens.
    pub fn spawn(mut program: Command) -> Self {
        let child = program.stderr(Stdio::piped()).spawn().unwrap();
        let mut server = Server { child, url: String::new(), log: None };
        let mut stderr = BufReader::new(server.child.stderr.take().unwrap());
        let mut line = String::new();
        while server.url.is_empty() {
            line.clear();
            assert_ne!(stderr.read_line(&mut line).unwrap(), 0, "the server ended");
            server.url = line.strip_prefix("listening on ").unwrap_or_default().trim().to_owned();
        }
        server.log = Some(stderr);
        server
    }

    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.url.split("//").nth(1).unwrap()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream
    }

    /// The body of what it answers to a request on a connection of its own.
    pub fn get(&self, path: &str) -> String {
        let mut stream = self.connect();
        let request =
            format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        read_all(&mut stream)
    }

    /// Its log, which nobody has read since it started.
    pub fn stderr(&mut self) -> Option<BufReader<ChildStderr>> {
        self.log.take()
    }

    pub fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([name, &self.child.id().to_string()]).status();
        assert!(sent.unwrap().success());
    }

    /// Its exit code.
    pub fn wait(mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }
}

pub fn run(words: &[&str]) -> Output {
    Command::new(PROGRAM).args(words).output().unwrap()
}

pub fn read_all(stream: &mut TcpStream) -> String {
    let mut answer = Vec::new();
    // A connection that the server closes hard has said what it had to say.
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

pub fn certificate(folder: &Path) -> reqwest::Certificate {
    let made =
        rcgen::generate_simple_self_signed(vec!["localhost".into(), "127.0.0.1".into()]).unwrap();
    std::fs::write(folder.join("cert.pem"), made.cert.pem()).unwrap();
    std::fs::write(folder.join("key.pem"), made.signing_key.serialize_pem()).unwrap();
    reqwest::Certificate::from_pem(made.cert.pem().as_bytes()).unwrap()
}

pub fn trusting(root: reqwest::Certificate) -> reqwest::Client {
    // Another test may have installed it before.
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder().tls_certs_only([root]).build().unwrap()
}

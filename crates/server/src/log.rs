//! The log: a thread of its own writes lines to standard error, and no request waits for it.
//!
//! Whoever reads a log may be slow, full or gone. A server that waited for it, or panicked over it,
//! would be down with it; so lines that nobody takes are lost, counted, and said to be.

use crate::config::LogFormat;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;

/// Lines that may wait for their reader.
const WAITING: usize = 4096;
/// How long the last lines may take at the end.
const LAST_WORDS: Duration = Duration::from_secs(1);

enum Message {
    Line(Vec<u8>),
    /// Everything before it has been written, or given up.
    End(SyncSender<()>),
}

/// Where lines go.
#[derive(Clone)]
pub(crate) struct Log {
    lines: SyncSender<Message>,
    lost: Arc<AtomicU64>,
}

impl Log {
    /// Writes what is logged from now on.
    ///
    /// # Errors
    /// If there is no thread to be had.
    pub fn start(format: LogFormat) -> io::Result<Self> {
        let log = Self::to(io::stderr())?;
        let filter =
            EnvFilter::try_from_env("CIPHERVEC_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
        // Errors of a log are nothing to log, least of all by printing them.
        let builder = tracing_subscriber::fmt()
            .with_env_filter(filter)
            .with_writer(log.clone())
            .log_internal_errors(false);
        // A program that embeds this one may log its own way already.
        let _ = match format {
            LogFormat::Text => builder.with_ansi(false).try_init(),
            LogFormat::Json => builder.json().flatten_event(true).try_init(),
        };
        Ok(log)
    }

    fn to(out: impl Write + Send + 'static) -> io::Result<Self> {
        let (lines, waiting) = sync_channel(WAITING);
        let lost = Arc::new(AtomicU64::new(0));
        let log = Log { lines, lost: lost.clone() };
        let builder = std::thread::Builder::new().name("ciphervec-log".to_owned());
        builder.spawn(move || write(&waiting, &lost, out))?;
        Ok(log)
    }

    /// Writes a line as it is.
    pub fn say(&self, line: &str) {
        self.send(format!("{line}\n").into_bytes());
    }

    fn send(&self, line: Vec<u8>) {
        if self.lines.try_send(Message::Line(line)).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Waits for a moment until what was logged is written.
    pub fn finish(&self) {
        let (done, written) = sync_channel(1);
        if self.lines.try_send(Message::End(done)).is_ok() {
            // Whoever does not read by then does not get to read it.
            let _ = written.recv_timeout(LAST_WORDS);
        }
    }
}

fn write(waiting: &Receiver<Message>, lost: &AtomicU64, mut out: impl Write) {
    for message in waiting {
        // What cannot be written is lost: there is nobody left to tell.
        match message {
            Message::Line(line) => {
                let count = lost.swap(0, Ordering::Relaxed);
                if count > 0 {
                    let _ = writeln!(
                        out,
                        "{count} lines of this log were lost: it was not read in time"
                    );
                }
                let _ = out.write_all(&line).and_then(|()| out.flush());
            }
            Message::End(done) => {
                let _ = done.try_send(());
            }
        }
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Event<'a>;

    fn make_writer(&'a self) -> Event<'a> {
        Event { log: self, line: Vec::new() }
    }
}

/// One event, which is sent when it is whole.
pub(crate) struct Event<'a> {
    log: &'a Log,
    line: Vec<u8>,
}

impl Write for Event<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.line.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Event<'_> {
    fn drop(&mut self) {
        if !self.line.is_empty() {
            self.log.send(std::mem::take(&mut self.line));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Mutex, mpsc};

    /// Takes its first line only when it is told to.
    struct Slow {
        first: Option<mpsc::Receiver<()>>,
        taken: Arc<Mutex<Vec<u8>>>,
    }

    impl Write for Slow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if let Some(first) = self.first.take() {
                first.recv().map_err(io::Error::other)?;
            }
            self.taken.lock().map_err(|_| io::Error::other("poisoned"))?.extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn nobody_waits_for_a_reader_and_what_is_lost_is_counted() {
        let (go, first) = mpsc::channel();
        let taken = Arc::new(Mutex::new(Vec::new()));
        let log = Log::to(Slow { first: Some(first), taken: taken.clone() }).expect("a thread");
        for line in 0..2 * WAITING {
            log.say(&line.to_string());
        }
        go.send(()).expect("the thread waits");
        let text = || String::from_utf8(taken.lock().expect("lines").clone()).expect("text");
        let words = "lines of this log were lost";
        // As long as the queue is full, a line more is lost, too.
        while !(text().contains(words) && text().ends_with("last\n")) {
            log.say("last");
            log.finish();
        }
        let text = text();
        let kept: Vec<&str> = text.lines().filter(|line| !line.contains(words)).collect();
        assert_eq!(kept[..3], ["0", "1", "2"]);
    }

    #[test]
    fn a_reader_that_is_gone_takes_nothing_along() {
        struct Gone;
        impl Write for Gone {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::BrokenPipe.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Err(io::ErrorKind::BrokenPipe.into())
            }
        }
        let log = Log::to(Gone).expect("a thread");
        log.say("a line");
        log.make_writer().write_all(b"an event").expect("is taken");
        log.finish();
    }
}

//! Where the bodies of answers go, and how much of them.

use crate::host::{Head, Host, Lost, Progress, Sink};
use crate::store::Receiver;

/// An answer that is kept as a whole.
#[derive(Default)]
pub struct Whole {
    pub limit: usize,
    pub head: Option<Head>,
    pub body: Vec<u8>,
}

impl Sink for Whole {
    fn begin(&mut self, head: &Head) -> core::result::Result<(), Lost> {
        self.head = Some(head.clone());
        self.body.clear();
        Ok(())
    }

    fn take(&mut self, piece: &[u8]) -> core::result::Result<(), Lost> {
        if self.body.len() + piece.len() > self.limit {
            return Err(Lost::too_long(self.limit as u64));
        }
        make_room(&mut self.body, piece.len())?;
        self.body.extend_from_slice(piece);
        Ok(())
    }
}

impl Receiver for Whole {
    fn answer(&mut self) -> Option<(Head, Vec<u8>)> {
        Some((self.head.take()?, core::mem::take(&mut self.body)))
    }
}

/// What went wrong is said in few bytes, whatever was asked for.
pub struct Parted<'a, R: ?Sized> {
    pub good: bool,
    pub error: Whole,
    pub sink: &'a mut R,
}

impl<R: Receiver + ?Sized> Sink for Parted<'_, R> {
    fn begin(&mut self, head: &Head) -> core::result::Result<(), Lost> {
        self.good = head.status == 200;
        if self.good { self.sink.begin(head) } else { self.error.begin(head) }
    }

    fn take(&mut self, piece: &[u8]) -> core::result::Result<(), Lost> {
        if self.good { self.sink.take(piece) } else { self.error.take(piece) }
    }
}

/// A blob of which a part may be there.
pub struct Blob<'a> {
    pub host: &'a dyn Host,
    pub bytes: Vec<u8>,
    pub from: usize,
    pub length: u64,
    /// Of what is no blob; its head is that of any.
    pub error: Whole,
}

impl Sink for Blob<'_> {
    fn begin(&mut self, head: &Head) -> core::result::Result<(), Lost> {
        self.error.begin(head)?;
        match head.status {
            200 => self.bytes.clear(),
            206 => {
                let starts = format!("bytes {}-", self.from);
                if !head.header("content-range").is_some_and(|range| range.starts_with(&starts)) {
                    return Err(Lost::refused("the server sent another range than was asked for"));
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn take(&mut self, piece: &[u8]) -> core::result::Result<(), Lost> {
        if !matches!(self.error.head, Some(Head { status: 200 | 206, .. })) {
            return self.error.take(piece);
        }
        if (self.bytes.len() + piece.len()) as u64 > self.length {
            return Err(Lost::too_long(self.length));
        }
        make_room(&mut self.bytes, piece.len())?;
        self.bytes.extend_from_slice(piece);
        let (done, total) = (self.bytes.len() as u64, Some(self.length));
        self.host.progress(Progress { phase: "read", done, total, ms: None });
        Ok(())
    }
}

/// Room for so many more bytes: WebAssembly has 4 GiB, and ends where it runs out.
fn make_room(bytes: &mut Vec<u8>, more: usize) -> core::result::Result<(), Lost> {
    let had = bytes.len();
    bytes.try_reserve(more).map_err(|_| {
        Lost::refused(format!("there is no memory for more than {had} bytes of the answer"))
    })
}

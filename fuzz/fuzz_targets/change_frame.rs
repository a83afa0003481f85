//! Fuzz target: a server reads the frame of a change, from any bytes. Whole and in pieces it comes
//! to the same.
#![no_main]

// The decoder is pure, so that it is compiled here without the server around it.
#[allow(dead_code, reason = "the server uses all of it")]
#[path = "../../crates/server/src/change.rs"]
mod change;
#[allow(dead_code, reason = "the server uses all of it")]
#[path = "../../crates/server/src/hex.rs"]
mod hex;
#[path = "../../crates/server/src/json_limits.rs"]
mod json_limits;

use change::{ChangeError, Decoder, Frame};
use ciphervec_owner::store::Change;

const LIMIT: u64 = 1 << 20;

fn opened(frame: Result<Frame, ChangeError>) -> Result<Change, ChangeError> {
    frame?.into_change(|upload| Ok(vec![0; usize::try_from(upload.length.min(64)).unwrap_or(64)]))
}

fn in_pieces(bytes: &[u8], size: usize) -> Result<Frame, ChangeError> {
    let mut decoder = Decoder::new(LIMIT, None);
    bytes.chunks(size).try_for_each(|piece| decoder.push(piece))?;
    decoder.finish()
}

libfuzzer_sys::fuzz_target!(|input: (bool, u8, &[u8])| {
    let (wrapped, size, bytes) = input;
    let mut frame = Vec::new();
    if wrapped {
        // A sound head before JSON and blobs of the fuzzer's own.
        let json = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
        frame.extend(b"CVCHANGE\x01\0\0\0");
        frame.extend((json as u32).to_le_bytes());
    }
    frame.extend(bytes);
    let whole = opened(Frame::from_bytes(&frame, LIMIT));
    let pieces = opened(in_pieces(&frame, usize::from(size).max(1)));
    assert_eq!(whole.is_ok(), pieces.is_ok());
    if let (Ok(whole), Ok(pieces)) = (whole, pieces) {
        assert_eq!(whole, pieces);
    }
});

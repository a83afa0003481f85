//! The idempotency key of a commit: the header, and what the commit remembers of it.

use super::problem::Problem;
use axum::http::HeaderMap;
use ciphervec::store::CommitKey;

/// The header's name.
pub const HEADER: &str = "idempotency-key";
const MAX_LEN: usize = 128;

/// The hash of the key, if the request has one.
///
/// # Errors
/// 400 unless it is 1 to 128 visible ASCII characters, once.
pub fn key(headers: &HeaderMap) -> Result<Option<[u8; 16]>, Problem> {
    let mut values = headers.get_all(HEADER).iter();
    let Some(value) = values.next() else { return Ok(None) };
    let bytes = value.as_bytes();
    let visible = bytes.iter().all(|byte| byte.is_ascii_graphic());
    if values.next().is_some() || bytes.is_empty() || bytes.len() > MAX_LEN || !visible {
        return Err(Problem::bad_request(format!(
            "Idempotency-Key must be 1 to {MAX_LEN} visible ASCII characters, once"
        ))
        .hint("a random UUID for each change; a retry sends the same one"));
    }
    Ok(Some(short(&blake3::hash(bytes))))
}

/// What a commit remembers: the key, and the frame that it came with.
pub fn commit_key(key: [u8; 16], frame: &blake3::Hasher) -> CommitKey {
    CommitKey { key, digest: short(&frame.finalize()) }
}

fn short(hash: &blake3::Hash) -> [u8; 16] {
    core::array::from_fn(|index| hash.as_bytes()[index])
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    fn of(values: &[&[u8]]) -> Result<Option<[u8; 16]>, Problem> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(HEADER, HeaderValue::from_bytes(value).expect("a header value"));
        }
        key(&headers)
    }

    #[test]
    fn keys_are_visible_and_few() {
        assert!(matches!(of(&[]), Ok(None)));
        let same = of(&[b"a-1"]).expect("a key");
        assert_eq!(same, of(&[b"a-1"]).expect("a key"));
        assert_ne!(same, of(&[b"a-2"]).expect("a key"));
        assert!(of(&[&[b'x'; 128]]).is_ok());
        for bad in [&b""[..], b"a b", b"\xff", &[b'x'; 129]] {
            assert!(of(&[bad]).is_err(), "{bad:?}");
        }
        assert!(of(&[b"a", b"a"]).is_err());
    }
}

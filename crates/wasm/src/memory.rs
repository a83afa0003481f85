//! Makes sure of memory before it is used, or says how much is missing. WebAssembly addresses 32 bits: 4 GiB, fewer where the
//! engine has fewer.

use crate::errors::{Failure, Result, Sort};

/// An empty vector with room for so many.
///
/// # Errors
/// `OutOfMemory`.
pub fn room<T>(what: &str, count: usize) -> Result<Vec<T>> {
    let mut out = Vec::new();
    match out.try_reserve_exact(count) {
        Ok(()) => Ok(out),
        Err(_) => Err(short(what, count as u64 * size_of::<T>() as u64)),
    }
}

/// Makes sure that so many bytes can be had at once, before work begins that would end in the middle without them.
///
/// # Errors
/// `OutOfMemory`.
pub fn expect(what: &str, bytes: u64) -> Result<()> {
    match usize::try_from(bytes) {
        Ok(bytes) => room::<u8>(what, bytes).map(drop),
        Err(_) => Err(short(what, bytes)),
    }
}

fn short(what: &str, bytes: u64) -> Failure {
    Failure::new(
        Sort::OutOfMemory,
        format!(
            "{what} needs {} MiB more memory than this engine gives WebAssembly, which ends at 4096 MiB; do it in smaller \
             parts, or with a native client",
            bytes.div_ceil(1 << 20)
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_had_is_named_in_mebibytes() {
        assert!(expect("a segment", 1 << 20).is_ok());
        let error = expect("a segment", u64::MAX).err().map(|error| (error.sort, error.message));
        let (sort, message) = error.unwrap_or((Sort::InvalidInput, String::new()));
        assert_eq!(sort, Sort::OutOfMemory);
        assert!(message.starts_with("a segment needs 17592186044416 MiB"), "{message}");
    }
}

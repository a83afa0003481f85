//! What is public in the description of a collection.
//!
//! The description is the owner's JSON: the index spec, the scheme, the key id and the epoch in
//! clear, everything else sealed.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ciphervec::IndexSpec;
use ciphervec::protect::records::RecordBatch;
use serde::Deserialize;

/// Newest format of the description; format 1 knew one scheme and did not name it. What the later ones add is the owner's.
const FORMAT: u64 = 8;

/// What a server reads of a description.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// The public parameters of the index.
    pub spec: IndexSpec,
    /// The epoch of the query key.
    pub epoch: u32,
    /// The public name of the key that the collection is sealed under.
    pub key_id: String,
}

#[derive(Deserialize)]
struct Content {
    format: u64,
    spec: String,
    scheme: Option<String>,
    key_id: String,
    epoch: u32,
    #[serde(default)]
    settings: String,
}

fn content(bytes: &[u8]) -> Result<Content, String> {
    serde_json::from_slice(bytes)
        .map_err(|error| format!("the description is not the JSON of a collection: {error}"))
}

impl Description {
    /// Reads what the owner's client wrote.
    ///
    /// # Errors
    /// A sentence that says what does not fit.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, String> {
        Self::read(&content(bytes)?)
    }

    /// Reads one that somebody sends; the sealed settings, which only the owner opens, must at least be a record.
    ///
    /// # Errors
    /// As [`Self::from_bytes`].
    pub fn received(bytes: &[u8]) -> Result<Self, String> {
        let content = content(bytes)?;
        let settings = STANDARD
            .decode(&content.settings)
            .map_err(|error| format!("the settings in the description are not base64: {error}"))?;
        let settings = RecordBatch::parse(&settings)
            .map_err(|error| format!("the settings in the description: {error}"))?;
        if settings.rows() != 1 {
            return Err(format!(
                "the settings in the description are one sealed record, {} came",
                settings.rows()
            ));
        }
        Self::read(&content)
    }

    fn read(content: &Content) -> Result<Self, String> {
        if content.format == 0 || content.format > FORMAT {
            return Err(format!(
                "the description has format {}, this server reads 1 to {FORMAT}; upgrade it",
                content.format
            ));
        }
        let spec = STANDARD
            .decode(&content.spec)
            .map_err(|error| format!("the spec in the description is not base64: {error}"))?;
        let spec = IndexSpec::from_bytes(&spec)
            .map_err(|error| format!("the spec in the description: {error}"))?;
        let named = content.scheme.as_deref();
        let named = if content.format == 1 { named.or(Some("sealed")) } else { named };
        if named != Some(spec.scheme().stored_name()) {
            return Err(format!(
                "the description names the scheme {:?}, its spec {:?}",
                named.unwrap_or(""),
                spec.scheme().stored_name()
            ));
        }
        Ok(Self { spec, epoch: content.epoch, key_id: content.key_id.clone() })
    }

    /// Whether the server needs the attachment `evaluation` to answer.
    pub fn needs_evaluation(&self) -> bool {
        self.spec.form().needs_evaluation_keys()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ciphervec::{Metric, Mode, Precision};

    fn written(format: u64, scheme: &str) -> Vec<u8> {
        let spec = IndexSpec::new("faces", 8, Metric::Cosine, Mode::Sealed, Precision::Standard)
            .expect("a spec");
        let spec = STANDARD.encode(spec.to_bytes());
        let scheme = if format == 1 { String::new() } else { format!("\"scheme\":\"{scheme}\",") };
        format!(
            "{{\"format\":{format},\"spec\":\"{spec}\",{scheme}\"key_id\":\"ab\",\"epoch\":3,\"settings\":\"\"}}"
        )
        .into_bytes()
    }

    #[test]
    fn every_format_is_read() {
        for format in [1, 2, 3, 4, 5] {
            let read = Description::from_bytes(&written(format, "sealed")).expect("reads");
            assert_eq!((read.spec.collection(), read.epoch), ("faces", 3));
            assert!(read.needs_evaluation());
        }
    }

    #[test]
    fn settings_that_are_no_record_are_not_taken() {
        let bytes = String::from_utf8(written(2, "sealed")).expect("text");
        let with = |settings: &[u8]| {
            let settings = format!("\"settings\":\"{}\"", STANDARD.encode(settings));
            bytes.replace("\"settings\":\"\"", &settings).into_bytes()
        };
        let mut empty = b"CVRECORD".to_vec();
        empty.extend([1, 0, 0, 0, 0, 0, 0, 0]);
        empty.extend([0; 8]);
        for settings in [&b""[..], b"no record", &empty] {
            let error = Description::received(&with(settings)).expect_err("refused");
            assert!(error.contains("settings"), "{error}");
        }
        let mut one = b"CVRECORD".to_vec();
        one.extend([1, 0, 0, 0, 1, 0, 0, 0]);
        one.extend([7; 16]);
        one.extend([0u64, 40].iter().flat_map(|end| end.to_le_bytes()));
        one.extend([9; 40]);
        assert!(Description::received(&with(&one)).is_ok());
    }

    #[test]
    fn what_does_not_fit_says_so() {
        for (bytes, word) in [
            (written(8, "sealed"), "format 8"),
            (written(2, "paillier"), "paillier"),
            (b"[]".to_vec(), "JSON"),
            (written(2, "sealed").iter().map(|&b| if b == b'=' { b'!' } else { b }).collect(), ""),
        ] {
            if word.is_empty() {
                continue;
            }
            let error = Description::from_bytes(&bytes).expect_err("refused");
            assert!(error.contains(word), "{error}");
        }
        let spec = STANDARD.encode([0u8; 90]);
        let bytes = format!(
            "{{\"format\":2,\"spec\":\"{spec}\",\"scheme\":\"sealed\",\"key_id\":\"\",\"epoch\":0}}"
        );
        assert!(Description::from_bytes(bytes.as_bytes()).expect_err("refused").contains("spec"));
    }
}

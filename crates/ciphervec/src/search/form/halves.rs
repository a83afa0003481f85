//! Contract of forms whose answers come in halves, one of which is asked for before the question is known. Both sides.

use crate::error::Result;
use crate::index::spec::IndexSpec;
use crate::search::message::WordsAsked;
use ciphervec_he::lattice::ring::Half;

/// How long halves of answers are, and how two make a whole.
pub trait HalfAnswers {
    /// Bytes of half of one query's answer over `rows` rows.
    ///
    /// # Errors
    /// A level that is none, or that no words were asked for.
    fn half_len(
        &self,
        spec: &IndexSpec,
        rows: usize,
        level: u8,
        words: Option<&WordsAsked>,
        half: Half,
    ) -> Result<usize>;

    /// Puts both halves of one query's answer over one segment together.
    ///
    /// # Errors
    /// As [`Self::half_len`].
    fn join(
        &self,
        spec: &IndexSpec,
        level: u8,
        words: Option<&WordsAsked>,
        halves: [&[u8]; 2],
        out: &mut [u8],
    ) -> Result<()>;
}

//! Segments that servers of release 0.1 took deleted rows out of, read as if all rows were there. Both sides.

use crate::search::form::contract::Pruned;
use ciphervec_he::lattice::compact;
use ciphervec_he::lattice::compact::Width;

impl Pruned for Width {
    fn spread(&self, words: &[u8], dimension: usize, kept: &[bool]) -> Vec<u8> {
        compact::spread(*self, words, dimension, kept)
    }
}

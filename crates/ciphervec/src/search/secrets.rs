//! What opens one segment: derived from the master key and the nonce, kept between queries. Owner only.

use ciphervec_he::lattice::{compact, ring};

/// The secrets of one segment, kept between queries. Wiped on drop.
pub(super) enum SegmentSecrets {
    Compact(compact::SegmentKey),
    Ring(ring::SegmentKey),
    /// Plain vectors.
    None,
}

//! Two or three stages of a transform on vectors in registers, by the butterflies of the lanes at
//! hand. Macros, so that nothing is written to memory in between.

/// Two stages on four vectors; the roots of the node and of its two children. `$first` is the
/// butterfly of the first stage.
macro_rules! forward4 {
    ($first:ident, $c:ident, $w:ident, $x:expr) => {{
        let [x0, x1, x2, x3] = $x;
        let (x0, x2) = $first!($c, x0, x2, $w[0]);
        let (x1, x3) = $first!($c, x1, x3, $w[0]);
        let (x0, x1) = split!($c, x0, x1, $w[1]);
        let (x2, x3) = split!($c, x2, x3, $w[2]);
        [x0, x1, x2, x3]
    }};
}
pub(crate) use forward4;

/// Three stages on eight vectors, stage by stage, so that four independent chains are always under
/// way.
macro_rules! forward8 {
    ($first:ident, $c:ident, $w:ident, $x:expr) => {{
        let [x0, x1, x2, x3, x4, x5, x6, x7] = $x;
        let (x0, x4) = $first!($c, x0, x4, $w[0]);
        let (x1, x5) = $first!($c, x1, x5, $w[0]);
        let (x2, x6) = $first!($c, x2, x6, $w[0]);
        let (x3, x7) = $first!($c, x3, x7, $w[0]);
        let (x0, x2) = split!($c, x0, x2, $w[1]);
        let (x1, x3) = split!($c, x1, x3, $w[1]);
        let (x4, x6) = split!($c, x4, x6, $w[2]);
        let (x5, x7) = split!($c, x5, x7, $w[2]);
        let (x0, x1) = split!($c, x0, x1, $w[3]);
        let (x2, x3) = split!($c, x2, x3, $w[4]);
        let (x4, x5) = split!($c, x4, x5, $w[5]);
        let (x6, x7) = split!($c, x6, x7, $w[6]);
        [x0, x1, x2, x3, x4, x5, x6, x7]
    }};
}
pub(crate) use forward8;

/// Two of three stages back on eight vectors, the sums of four reduced so that one more addition
/// fits.
macro_rules! inverse8_lower {
    ($c:ident, $w:ident, $x:expr) => {{
        let [x0, x1, x2, x3, x4, x5, x6, x7] = $x;
        let (x0, x1) = join!($c, x0, x1, $w[3]);
        let (x2, x3) = join!($c, x2, x3, $w[4]);
        let (x4, x5) = join!($c, x4, x5, $w[5]);
        let (x6, x7) = join!($c, x6, x7, $w[6]);
        let (x0, x2) = join!($c, x0, x2, $w[1]);
        let (x1, x3) = join!($c, x1, x3, $w[1]);
        let (x4, x6) = join!($c, x4, x6, $w[2]);
        let (x5, x7) = join!($c, x5, x7, $w[2]);
        [settle($c, x0), x1, x2, x3, settle($c, x4), x5, x6, x7]
    }};
}
pub(crate) use inverse8_lower;

//! Calls every kernel of the back-end that is current or that the caller names.
//!
//! Every operation is listed once, with the signature that it has in the module of the same name of
//! every back-end. Each becomes one match, whose arms are the rows of `table.rs`.
#![allow(unsafe_code)]

use std::sync::OnceLock;

use super::operands::basis::ConversionTable;
use super::operands::convert::SignedDigit;
use super::operands::montgomery::{LimbFormat, Reduction, Row};
use super::operands::ntt::NttPlan;
use super::operands::pcmm::Weights;
use super::operands::sample::WIDE;
use super::table::with_back_ends;
use super::{Backend, portable};
use crate::modulus::{Modulus, Shoup};

/// `$module::$kernel` of the back-end, called after seeing that the processor can run it.
macro_rules! call {
    (
        ($backend:expr, $module:ident $kernel:ident $arguments:tt)
        $($(#[$doc:meta])* $variant:ident, $name:ident, $family:ident, $built:meta;)*
    ) => {{
        let backend: Backend = $backend;
        assert_available(backend);
        match backend {
            $(
                #[cfg($built)]
                #[allow(unused_unsafe)] // A kernel that is the portable one is safe.
                // SAFETY: the assertion saw every feature that the kernel is compiled with.
                Backend::$variant => unsafe {
                    crate::backend::$family::$name::$module::$kernel $arguments
                },
            )*
            _ => portable::$module::$kernel $arguments,
        }
    }};
}

/// `$module::$constant` of the back-end.
macro_rules! constant {
    (
        ($backend:expr, $module:ident $constant:ident)
        $($(#[$doc:meta])* $variant:ident, $name:ident, $family:ident, $built:meta;)*
    ) => {
        match $backend {
            $(
                #[cfg($built)]
                Backend::$variant => crate::backend::$family::$name::$module::$constant,
            )*
            _ => portable::$module::$constant,
        }
    };
}

/// Operations of a module, on the back-end that is current.
macro_rules! on_current {
    (
        $module:ident:
        $(fn $kernel:ident($($argument:ident: $kind:ty),* $(,)?) $(-> $result:ty)?;)*
    ) => {
        $(
            pub(crate) fn $kernel($($argument: $kind),*) $(-> $result)? {
                with_back_ends!(call (Backend::current(), $module $kernel ($($argument),*)))
            }
        )*
    };
}

/// Operations of a module, on a back-end that the caller names first.
macro_rules! on_given {
    ($module:ident: $(fn $kernel:ident($($argument:ident: $kind:ty),* $(,)?);)*) => {
        $(
            pub(crate) fn $kernel(backend: Backend, $($argument: $kind),*) {
                with_back_ends!(call (backend, $module $kernel ($($argument),*)))
            }
        )*
    };
}

#[inline(always)]
fn assert_available(backend: Backend) {
    assert!(backend.is_available(), "this processor cannot run the {} back-end", backend.name());
}

pub(crate) mod poly {
    use super::*;

    on_current! { poly:
        fn add_assign(a: &mut [u64], b: &[u64], m: &Modulus);
        fn sub_assign(a: &mut [u64], b: &[u64], m: &Modulus);
        fn neg_assign(a: &mut [u64], m: &Modulus);
        fn mul(out: &mut [u64], a: &[u64], b: &[u64], m: &Modulus);
        fn mul_assign(a: &mut [u64], b: &[u64], m: &Modulus);
        fn mul_add_assign(acc: &mut [u64], a: &[u64], b: &[u64], m: &Modulus);
        fn scalar_mul_assign(a: &mut [u64], s: &Shoup, m: &Modulus);
        fn dot(out: &mut [u64], a: &[&[u64]], b: &[&[u64]], m: &Modulus);
        fn dot_repeated(out: &mut [u64], a: &[&[u64]], b: &[&[u64]], m: &Modulus);
        fn sub_scale_assign(a: &mut [u64], b: &[u64], s: &Shoup, m: &Modulus);
        fn split(
            parts: [&mut [u64]; 2],
            low: &mut [u64],
            high: &[u64],
            inverse: &Shoup,
            rotated: Option<&[u64]>,
            w: &[u64],
            m: &Modulus,
        );
        fn sub_centred_scale_assign(
            a: &mut [u64],
            b: &[u64],
            from: &Modulus,
            s: &Shoup,
            m: &Modulus,
        );
        fn recentre_to(out: &mut [u64], poly: &[u64], from: &Modulus, to: &Modulus);
    }
}

pub(crate) mod switch {
    use super::*;

    on_current! { switch:
        fn permute(out: &mut [u64], a: &[u64], perm: &[u32]);
        fn dot_pair(
            out0: &mut [u64],
            out1: &mut [u64],
            digits: &[&[u64]],
            keys0: &[&[u64]],
            keys1: &[&[u64]],
            m: &Modulus,
        );
        fn dot_pair_permuted(
            out0: &mut [u64],
            out1: &mut [u64],
            digits: &[&[u64]],
            keys0: &[&[u64]],
            keys1: &[&[u64]],
            perm: &[u32],
            m: &Modulus,
        );
    }
}

pub(crate) mod basis {
    use super::*;

    on_current! { basis:
        fn convert(table: &ConversionTable, from: &[&[u64]], to: &mut [&mut [u64]]);
    }
}

pub(crate) mod pcmm {
    use super::*;

    on_current! { pcmm:
        fn multiply(weights: &Weights, inputs: &[&[u64]], outputs: &mut [&mut [u64]], m: &Modulus);
    }
}

pub(crate) mod convert {
    use super::*;

    on_current! { convert:
        fn recentre(poly: &mut [u64], from: u64, to: u64);
        fn centre(poly: &mut [u64], modulus: u64);
        fn lift(out: &mut [u64], values: &[i64], modulus: u64);
        fn lift_ternary(out: &mut [u64], values: &[i8], modulus: u64);
        fn lift_noisy(out: &mut [u64], values: &[i64], noise: &[i32], modulus: u64);
        fn signed_digit(out: &mut [u64], poly: &[u64], modulus: u64, digit: &SignedDigit);
        fn switch_down(out: &mut [u32], poly: &[u64], modulus: u64);
        fn switch_up(out: &mut [u64], values: &[u32], modulus: u64);
        fn pack24(out: &mut [u8], values: &[u32]);
        fn unpack24(out: &mut [u32], bytes: &[u8]);
    }
}

pub(crate) mod sample {
    use super::*;

    on_current! { sample:
        fn accept(words: &mut [u64], mask: u64, q: u64) -> usize;
        fn gaussian(words: &[u64], out: &mut [i32]);
        fn keystream(
            key: &[u8; 32],
            nonce: &[u8; 12],
            counter: u32,
            out: &mut [[u8; WIDE]],
        ) -> bool;
    }
}

pub(crate) mod wrapping {
    use super::*;

    on_current! { wrapping:
        fn dots_u32(x: &[u32], weights: &[u32], out: &mut [u32]);
        fn dots_u64(x: &[u64], weights: &[u64], out: &mut [u64]);
        fn differences_u32(
            words: &[u32],
            masks: &[u64],
            shape: (u32, u32),
            unit: f64,
            sums: &mut [i64],
            scaled: &mut [f64],
        ) -> (i64, i64);
        fn differences_u64(
            words: &[u64],
            masks: &[u64],
            shape: (u32, u32),
            unit: f64,
            sums: &mut [i64],
            scaled: &mut [f64],
        ) -> (i64, i64);
        fn ternary(bytes: &[u8], rows: &[&[i8]], out: &mut [u8]);
    }
}

pub(crate) mod ring {
    use super::*;

    on_current! { ring:
        fn pack50(coeffs: &[u64], out: &mut [u8]);
        fn unpack50(bytes: &[u8], out: &mut [u64]);
        fn scan(
            data: &[u8],
            nodes: usize,
            queries: &[&[u64]],
            m: &Modulus,
            u: &mut [u64],
            v: &mut [u64],
        );
    }
}

pub(crate) mod matmul {
    use super::*;

    on_given! { matmul:
        fn tile_u32(tile: &[u8], w: usize, query: &[i32], out: &mut [u32]);
        fn tile_u24(tile: &[u8], w: usize, query: &[i32], out: &mut [u32]);
        fn tile_u64(tile: &[u8], w: usize, query: &[i64], out: &mut [u64]);
        fn batch_u32(
            tile: &[u8],
            w: usize,
            packed: &[i32],
            block: usize,
            out: &mut [&mut [u32]],
        );
        fn batch_u24(
            tile: &[u8],
            w: usize,
            packed: &[i32],
            block: usize,
            out: &mut [&mut [u32]],
        );
        fn batch_u64(
            tile: &[u8],
            w: usize,
            packed: &[i64],
            block: usize,
            out: &mut [&mut [u64]],
        );
    }

    /// How many queries a back-end's batch kernels take at a time.
    pub(crate) fn query_block(backend: Backend) -> usize {
        with_back_ends!(constant (backend, matmul QUERIES))
    }
}

pub(crate) mod float_scan {
    use super::*;

    on_given! { float_scan:
        fn products(rows: &[u8], dim: usize, queries: &[f64], out: &mut [&mut [[u8; 4]]]);
    }
}

pub(crate) mod montgomery {
    use super::*;

    on_given! { montgomery:
        fn mul(r: &Reduction, lanes: usize, out: &mut [Row], a: &[Row], b: &[Row], m: &mut [Row]);
        fn square(r: &Reduction, lanes: usize, out: &mut [Row], a: &[Row], m: &mut [Row]);
        fn select(out: &mut [Row], table: &[Row], index: &[u64; 8]);
        fn select_single(out: &mut [Row], table: &[u64], index: &[u64; 8]);
    }

    /// How a back-end's kernels hold numbers.
    pub(crate) fn limb_format(backend: Backend) -> LimbFormat {
        with_back_ends!(constant (backend, montgomery FORMAT))
    }
}

pub(crate) mod ntt {
    use super::*;

    macro_rules! define_roots {
        (() $($(#[$doc:meta])* $variant:ident, $name:ident, $family:ident, $built:meta;)*) => {
            /// A transform's roots as every back-end multiplies by them, each made when that
            /// back-end first runs it.
            #[derive(Clone, Debug, Default)]
            pub(crate) struct Roots {
                portable: OnceLock<portable::ntt::Roots>,
                $(
                    #[cfg($built)]
                    $name: OnceLock<crate::backend::$family::$name::ntt::Roots>,
                )*
            }
        };
    }
    with_back_ends!(define_roots());

    /// As [`call`], with the back-end's own roots between the plan and the data.
    macro_rules! transform {
        (
            ($backend:expr, $kernel:ident $lazy:ident ($plan:expr, $roots:expr, $data:expr))
            $($(#[$doc:meta])* $variant:ident, $name:ident, $family:ident, $built:meta;)*
        ) => {{
            let backend: Backend = $backend;
            assert_available(backend);
            match backend {
                $(
                    #[cfg($built)]
                    Backend::$variant => {
                        use crate::backend::$family::$name::ntt;
                        let roots = $roots.$name.get_or_init(|| ntt::roots($plan));
                        #[allow(unused_unsafe)] // A kernel that is the portable one is safe.
                        // SAFETY: the assertion saw every feature that the kernel is compiled with.
                        unsafe { ntt::$kernel::<$lazy>($plan, roots, $data) }
                    }
                )*
                _ => {
                    let roots = $roots.portable.get_or_init(|| portable::ntt::roots($plan));
                    portable::ntt::$kernel::<$lazy>($plan, roots, $data);
                }
            }
        }};
    }

    pub(crate) fn forward<const LAZY: bool>(
        backend: Backend,
        plan: &NttPlan,
        roots: &Roots,
        data: &mut [u64],
    ) {
        with_back_ends!(transform (backend, forward LAZY (plan, roots, data)))
    }

    pub(crate) fn inverse<const LAZY: bool>(
        backend: Backend,
        plan: &NttPlan,
        roots: &Roots,
        data: &mut [u64],
    ) {
        with_back_ends!(transform (backend, inverse LAZY (plan, roots, data)))
    }
}

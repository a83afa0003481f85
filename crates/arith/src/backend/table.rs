//! Table of back-ends: a row for each, from which their enum and every match over them are made.

/// Hands the rows to `$then`, after `$arguments`. A row says what the back-end needs and is called
/// in [`super::Backend`], the folder it lives in, which is its name too, the family's folder around
/// that, and the `cfg` of the builds that have it: on x86 every build, and the processor is asked; a
/// WebAssembly module says what it needs as a whole, so one with SIMD is a build of its own.
///
/// Slowest first: the last one that a processor can run is the one it uses. The portable back-end
/// is not listed, since it is what is left when no row fits.
macro_rules! with_back_ends {
    ($then:ident $arguments:tt) => {
        $then! {
            $arguments
            /// x86-64 with AVX2 and FMA.
            Avx2, avx2, x86, target_arch = "x86_64";
            /// x86-64 with AVX-512 F but not all of the rest: multi-limb products in 512 bits, the
            /// other kernels as with AVX2.
            Avx512f, avx512f, x86, target_arch = "x86_64";
            /// x86-64 with AVX-512 F, DQ, BW, VL, IFMA and VBMI.
            Avx512, avx512, x86, target_arch = "x86_64";
            /// 64-bit ARM, all of which have NEON.
            Neon, neon, arm, target_arch = "aarch64";
            /// WebAssembly with SIMD of 128 bits.
            Simd128, simd128, wasm, all(target_arch = "wasm32", target_feature = "simd128");
        }
    };
}
pub(crate) use with_back_ends;

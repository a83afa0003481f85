//! Back-end choice, the aligned buffer, and scans on several threads.

use ciphervec_arith::backend::BACKEND_VARIABLE;
use ciphervec_arith::matmul::scan_u32;
use ciphervec_arith::{AlignedBytes, ArithError, Backend};

#[test]
fn names_are_known_or_refused() {
    for backend in Backend::available() {
        assert_eq!(Backend::from_name(backend.name()), Ok(backend));
    }
    for name in ["", "AVX2", "sse", "avx512 "] {
        let error = Backend::from_name(name).expect_err("an unknown name");
        assert!(matches!(&error, ArithError::Backend { name: n, .. } if n == name));
        assert!(error.to_string().contains("portable, avx2, avx512f, avx512, neon"), "{error}");
    }
}

#[test]
fn the_environment_decides_what_it_names() {
    let named = std::env::var(BACKEND_VARIABLE).unwrap_or_default();
    let expected = if named.is_empty() {
        Backend::available().pop().expect("portable at least")
    } else {
        Backend::from_name(&named).expect("tests run with a usable name")
    };
    assert_eq!(Backend::from_env(), Ok(expected));
    assert_eq!(Backend::current(), expected);
}

/// A module cannot ask: what it was compiled with decides.
#[test]
#[cfg(target_arch = "wasm32")]
fn modules_with_simd_use_it() {
    let best = if cfg!(target_feature = "simd128") { "simd128" } else { "portable" };
    assert_eq!(Backend::available().pop().map(Backend::name), Some(best));
}

#[test]
fn forcing_ends_with_the_call() {
    let before = Backend::current();
    for backend in Backend::available() {
        assert_eq!(backend.run(Backend::current), Ok(backend));
    }
    assert_eq!(Backend::current(), before);
}

#[test]
#[cfg(panic = "unwind")]
fn forcing_ends_even_by_a_panic() {
    let before = Backend::current();
    let panicked = std::panic::catch_unwind(|| Backend::Portable.run(|| panic!("on purpose")));
    assert!(panicked.is_err());
    assert_eq!(Backend::current(), before);
}

#[test]
#[cfg(not(target_family = "wasm"))]
fn threads_do_not_change_a_scan() {
    use ciphervec_arith::Stream;
    use ciphervec_arith::matmul::scan_u32_batch;

    let (rows, dim, queries) = (5000, 24, 7);
    let mut data = AlignedBytes::zeroed(4 * rows * dim);
    Stream::new(&[1; 32], 0).fill(&mut data);
    let query: Vec<i32> = (0..(queries * dim) as i32).map(|i| i * 7919 - 600_000).collect();
    let on = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a pool");
        let (mut one, mut many) = (vec![0; rows], vec![0; queries * rows]);
        pool.install(|| {
            scan_u32(&data, rows, dim, &query[..dim], &mut one);
            scan_u32_batch(&data, rows, dim, &query, &mut many);
        });
        (one, many)
    };
    assert!(on(1) == on(3));
}

#[test]
#[should_panic(expected = "matrix bytes")]
fn scans_refuse_a_matrix_of_another_size() {
    scan_u32(&[0; 15], 2, 2, &[1, 1], &mut [0; 2]);
}

#[test]
fn buffers_are_aligned_zeroed_and_silent() {
    for len in [0, 1, 63, 64, 65, 1000] {
        let mut buffer = AlignedBytes::zeroed(len);
        assert_eq!(buffer.len(), len);
        assert_eq!(buffer.is_empty(), len == 0);
        assert!(buffer.iter().all(|&b| b == 0));
        assert_eq!(buffer.as_ptr() as usize % 64, 0);
        buffer.as_mut_slice().fill(0xa5);
        let copy = AlignedBytes::from_slice(&buffer);
        assert_eq!(copy.as_slice(), buffer.as_slice());
        assert_eq!(format!("{copy:?}"), format!("AlignedBytes {{ len: {len}, .. }}"));
    }
}

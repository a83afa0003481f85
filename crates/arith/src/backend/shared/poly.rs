//! Pointwise arithmetic: residues as doubles and exact products, over the lanes of a back-end.

macro_rules! double_pointwise {
    ($features:literal) => {
        use super::lanes::*;
        use crate::backend::portable;
        use crate::modulus::KERNEL_BITS;
        use crate::modulus::{Modulus, Shoup};

        #[inline]
        #[target_feature(enable = $features)]
        fn constants(m: &Modulus) -> Constants {
            let q = m.value() as f64;
            Constants::new(q, 1.0 / q)
        }

        #[target_feature(enable = $features)]
        pub(crate) fn add_assign(a: &mut [u64], b: &[u64], m: &Modulus) {
            portable::poly::add_assign(a, b, m);
        }

        #[target_feature(enable = $features)]
        pub(crate) fn sub_assign(a: &mut [u64], b: &[u64], m: &Modulus) {
            portable::poly::sub_assign(a, b, m);
        }

        #[target_feature(enable = $features)]
        pub(crate) fn neg_assign(a: &mut [u64], m: &Modulus) {
            portable::poly::neg_assign(a, m);
        }

        #[target_feature(enable = $features)]
        pub(crate) fn mul(out: &mut [u64], a: &[u64], b: &[u64], m: &Modulus) {
            if m.value() >> KERNEL_BITS != 0 {
                return portable::poly::mul(out, a, b, m);
            }
            let c = constants(m);
            let (z, z_rest) = out.as_chunks_mut::<LANES>();
            let ((x, x_rest), (y, y_rest)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
            for ((z, x), y) in z.iter_mut().zip(x).zip(y) {
                store_residues(&c, z, multiply(&c, load_residues(x), load_residues(y)));
            }
            portable::poly::mul(z_rest, x_rest, y_rest, m);
        }

        #[target_feature(enable = $features)]
        pub(crate) fn mul_assign(a: &mut [u64], b: &[u64], m: &Modulus) {
            if m.value() >> KERNEL_BITS != 0 {
                return portable::poly::mul_assign(a, b, m);
            }
            let c = constants(m);
            let ((x, x_rest), (y, y_rest)) = (a.as_chunks_mut::<LANES>(), b.as_chunks::<LANES>());
            for (x, y) in x.iter_mut().zip(y) {
                store_residues(&c, x, multiply(&c, load_residues(x), load_residues(y)));
            }
            portable::poly::mul_assign(x_rest, y_rest, m);
        }

        #[target_feature(enable = $features)]
        pub(crate) fn mul_add_assign(acc: &mut [u64], a: &[u64], b: &[u64], m: &Modulus) {
            if m.value() >> KERNEL_BITS != 0 {
                return portable::poly::mul_add_assign(acc, a, b, m);
            }
            let c = constants(m);
            let (z, z_rest) = acc.as_chunks_mut::<LANES>();
            let ((x, x_rest), (y, y_rest)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
            for ((z, x), y) in z.iter_mut().zip(x).zip(y) {
                let product = multiply(&c, load_residues(x), load_residues(y));
                store_residues(&c, z, reduce(&c, add(load_residues(z), product)));
            }
            portable::poly::mul_add_assign(z_rest, x_rest, y_rest, m);
        }

        #[target_feature(enable = $features)]
        pub(crate) fn scalar_mul_assign(a: &mut [u64], s: &Shoup, m: &Modulus) {
            if m.value() >> KERNEL_BITS != 0 {
                return portable::poly::scalar_mul_assign(a, s, m);
            }
            let c = constants(m);
            let root = m.to_centered(s.value) as f64;
            let w = spread(root, root / m.value() as f64);
            let (x, rest) = a.as_chunks_mut::<LANES>();
            for x in x {
                store_residues(&c, x, mul_root(&c, load_residues(x), w));
            }
            portable::poly::scalar_mul_assign(rest, s, m);
        }

        #[target_feature(enable = $features)]
        pub(crate) fn sub_scale_assign(a: &mut [u64], b: &[u64], s: &Shoup, m: &Modulus) {
            if m.value() >> KERNEL_BITS != 0 {
                return portable::poly::sub_scale_assign(a, b, s, m);
            }
            let c = constants(m);
            let root = m.to_centered(s.value) as f64;
            let w = spread(root, root / m.value() as f64);
            let ((x, x_rest), (y, y_rest)) = (a.as_chunks_mut::<LANES>(), b.as_chunks::<LANES>());
            for (x, y) in x.iter_mut().zip(y) {
                let difference = sub(load_residues(x), load_residues(y));
                store_residues(&c, x, mul_root(&c, difference, w));
            }
            portable::poly::sub_scale_assign(x_rest, y_rest, s, m);
        }

        /// The difference is below `3/2 2^50`, so its product's quotient is off by less than `0.15`
        /// before it is rounded.
        #[target_feature(enable = $features)]
        pub(crate) fn sub_centred_scale_assign(
            a: &mut [u64],
            b: &[u64],
            from: &Modulus,
            s: &Shoup,
            m: &Modulus,
        ) {
            if m.value() >> KERNEL_BITS != 0 {
                return portable::poly::sub_centred_scale_assign(a, b, from, s, m);
            }
            let (c, source) = (constants(m), constants(from));
            let root = m.to_centered(s.value) as f64;
            let w = spread(root, root / m.value() as f64);
            let ((x, x_rest), (y, y_rest)) = (a.as_chunks_mut::<LANES>(), b.as_chunks::<LANES>());
            for (x, y) in x.iter_mut().zip(y) {
                let difference = sub(load_residues(x), reduce(&source, load_residues(y)));
                store_residues(&c, x, mul_root(&c, difference, w));
            }
            portable::poly::sub_centred_scale_assign(x_rest, y_rest, from, s, m);
        }

        /// A residue is odd halves away from a tie by more than its quotient is wrong, so `reduce`
        /// centres exactly.
        #[target_feature(enable = $features)]
        pub(crate) fn recentre_to(out: &mut [u64], poly: &[u64], from: &Modulus, to: &Modulus) {
            if to.value() >> KERNEL_BITS != 0 {
                return portable::poly::recentre_to(out, poly, from, to);
            }
            let (c, source) = (constants(to), constants(from));
            let (z, z_rest) = out.as_chunks_mut::<LANES>();
            let (x, x_rest) = poly.as_chunks::<LANES>();
            for (z, x) in z.iter_mut().zip(x) {
                store_residues(&c, z, reduce(&c, reduce(&source, load_residues(x))));
            }
            portable::poly::recentre_to(z_rest, x_rest, from, to);
        }
    };
}
pub(crate) use double_pointwise;

/// A tree's step and sums of products over four lanes.
macro_rules! double_dots {
    ($features:literal) => {
        /// `s` is above `-0.6 q` and below `1.6 q`; a difference is centred before its product.
        #[target_feature(enable = $features)]
        pub(crate) fn split(
            [even, odd]: [&mut [u64]; 2],
            low: &mut [u64],
            high: &[u64],
            inverse: &Shoup,
            rotated: Option<&[u64]>,
            w: &[u64],
            m: &Modulus,
        ) {
            let whole = even.len() / LANES * LANES;
            if m.value() >> KERNEL_BITS != 0 || whole != even.len() {
                return portable::poly::split([even, odd], low, high, inverse, rotated, w, m);
            }
            let (c, inverse) = (Constants::of(m), factor(m, inverse));
            let outs = even.as_chunks_mut().0.iter_mut().zip(odd.as_chunks_mut().0);
            let switched = low.as_chunks().0.iter().zip(high.as_chunks().0);
            let rotated = rotated.map(|rotated| rotated.as_chunks().0);
            for (i, (((even, odd), (low, high)), w)) in
                outs.zip(switched).zip(w.as_chunks().0).enumerate()
            {
                let mut s = mul_root(&c, sub(load_residues(low), load_residues(high)), inverse);
                if let Some(rotated) = rotated {
                    s = add(s, load_residues(&rotated[i]));
                }
                let x = load_residues(even);
                store_residues(&c, even, reduce(&c, add(x, s)));
                let product = multiply(&c, reduce(&c, sub(x, s)), load_residues(w));
                store_residues(&c, odd, product);
            }
        }

        /// Products below `7/8 q` that add up to less than `8q` together with a reduced sum.
        pub(crate) const TERMS: usize = 8;

        /// `out = sum_j a_j b_j`, the products as doubles, the sum reduced once in eight terms.
        #[target_feature(enable = $features)]
        pub(crate) fn dot(out: &mut [u64], a: &[&[u64]], b: &[&[u64]], m: &Modulus) {
            if m.value() >> KERNEL_BITS != 0 {
                return portable::poly::dot(out, a, b, m);
            }
            let c = Constants::of(m);
            let (chunks, _) = out.as_chunks_mut::<LANES>();
            let whole = chunks.len() * LANES;
            for (i, target) in chunks.iter_mut().enumerate() {
                let mut sum = load_residues(&[0; LANES]);
                for (a, b) in a.chunks(TERMS).zip(b.chunks(TERMS)) {
                    for (a, b) in a.iter().zip(b) {
                        let (x, y) = (&a.as_chunks::<LANES>().0[i], &b.as_chunks::<LANES>().0[i]);
                        sum = add(sum, multiply(&c, load_residues(x), load_residues(y)));
                    }
                    sum = reduce(&c, sum);
                }
                store_residues(&c, target, sum);
            }
            portable::poly::dot_from(whole, out, a, b, m);
        }

        /// The same with each word of a `b_j` as often as `out` is longer.
        #[target_feature(enable = $features)]
        pub(crate) fn dot_repeated(out: &mut [u64], a: &[&[u64]], b: &[&[u64]], m: &Modulus) {
            let gap = out.len() / b[0].len();
            if m.value() >> KERNEL_BITS != 0 || !gap.is_multiple_of(LANES) {
                return portable::poly::dot_repeated(out, a, b, m);
            }
            let c = Constants::of(m);
            for (i, target) in out.as_chunks_mut::<LANES>().0.iter_mut().enumerate() {
                let place = i * LANES / gap;
                let mut sum = load_residues(&[0; LANES]);
                for (a, b) in a.chunks(TERMS).zip(b.chunks(TERMS)) {
                    for (a, b) in a.iter().zip(b) {
                        let x = load_residues(&a.as_chunks::<LANES>().0[i]);
                        sum = add(sum, multiply(&c, x, load_residues(&[b[place]; LANES])));
                    }
                    sum = reduce(&c, sum);
                }
                store_residues(&c, target, sum);
            }
        }
    };
}
pub(crate) use double_dots;

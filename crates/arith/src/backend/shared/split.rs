//! A tree's step by a back-end's own passes over words.

macro_rules! split_by_passes {
    () => {
        pub(crate) fn split(
            [even, odd]: [&mut [u64]; 2],
            low: &mut [u64],
            high: &[u64],
            inverse: &Shoup,
            rotated: Option<&[u64]>,
            w: &[u64],
            m: &Modulus,
        ) {
            sub_scale_assign(low, high, inverse, m);
            if let Some(rotated) = rotated {
                add_assign(low, rotated, m);
            }
            odd.copy_from_slice(even);
            sub_assign(odd, low, m);
            mul_assign(odd, w, m);
            add_assign(even, low, m);
        }
    };
}
pub(crate) use split_by_passes;

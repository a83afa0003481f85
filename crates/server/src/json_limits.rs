//! JSON of strangers within limits: objects, and lists no longer than agreed.

use crate::hex;
use ciphervec::store::SegmentId;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use std::collections::BTreeSet;
use std::fmt;
use std::marker::PhantomData;

/// The most segments whose rows one change deletes.
const MAX_ROW_LISTS: usize = 65_536;

/// A list of at most `N` entries: a longer one is refused while it is read, before it takes memory.
pub struct Few<T, const N: usize>(pub Vec<T>);

impl<T, const N: usize> Default for Few<T, N> {
    fn default() -> Self {
        Few(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>, const N: usize> Deserialize<'de> for Few<T, N> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader<T, const N: usize>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>, const N: usize> Visitor<'de> for Reader<T, N> {
            type Value = Few<T, N>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(formatter, "a list of at most {N} entries")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = list.next_element()? {
                    if entries.len() == N {
                        return Err(A::Error::custom(format!("at most {N} entries expected")));
                    }
                    entries.push(entry);
                }
                Ok(Few(entries))
            }
        }

        deserializer.deserialize_seq(Reader(PhantomData))
    }
}

/// A JSON object: a struct by itself could be written as an array, too.
#[derive(Default)]
pub struct Object<T>(pub T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for Reader<T> {
            type Value = Object<T>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Object<T>, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(Object)
            }
        }

        deserializer.deserialize_map(Reader(PhantomData))
    }
}

/// Row numbers by segment; a segment named twice is refused.
#[derive(Default)]
pub struct RowLists(pub Vec<(SegmentId, Vec<u32>)>);

impl<'de> Deserialize<'de> for RowLists {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;

        impl<'de> Visitor<'de> for Reader {
            type Value = RowLists;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object of row numbers by segment")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RowLists, A::Error> {
                let (mut lists, mut seen) = (Vec::new(), BTreeSet::new());
                while let Some(name) = map.next_key::<std::borrow::Cow<'de, str>>()? {
                    let id: SegmentId = hex::parse(&name).ok_or_else(|| {
                        A::Error::custom("delete_rows: 32 lower-case hex digits expected")
                    })?;
                    if !seen.insert(id) || lists.len() == MAX_ROW_LISTS {
                        return Err(A::Error::custom(format!(
                            "delete_rows: every segment once, at most {MAX_ROW_LISTS}"
                        )));
                    }
                    lists.push((id, map.next_value()?));
                }
                Ok(RowLists(lists))
            }
        }

        deserializer.deserialize_map(Reader)
    }
}

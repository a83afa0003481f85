//! View: an owner's half and what it knows of its rows, for whoever asks about these: a collection's replica, or a half that stands alone.

pub mod flooding;
pub mod spread;

use ciphervec_owner::search::{Origin, Owner, SegmentDirectory, Selection};
use ciphervec_owner::{Id, Metric, SegmentId};

use crate::error::{Error, Result};
use crate::face::Face;
use crate::view::spread::{centred, chosen};

/// The two, and how their user is spoken to.
#[derive(Clone, Copy)]
pub struct View<'a> {
    pub face: Face,
    pub owner: &'a Owner,
    pub directory: &'a SegmentDirectory,
}

impl<'a> View<'a> {
    /// The index, as messages name it.
    pub fn name(&self) -> String {
        self.face.quoted(self.owner.spec().collection())
    }

    /// What is said of a writer's segment that is not used any more.
    pub fn passed_over(&self, id: SegmentId) -> String {
        let writer = match self.directory.origin(id) {
            Some(Origin::Writer(name)) => name.as_str(),
            _ => "",
        };
        format!(
            "segment {id} of writer {} failed its check and was passed over: its rows were not sealed as they should be, or the answer \
             about them was changed.",
            self.face.quoted(writer)
        )
    }

    /// Where ids are.
    pub fn places(&self, ids: &[Id]) -> Result<Vec<(SegmentId, u32)>> {
        let place = |id: &Id| {
            self.directory.locate(id).ok_or_else(|| {
                Error::UnknownId(format!(
                    "id {} is not in {}; nothing was changed. Ids are typed: 1 and \"1\" are different.",
                    shown(id),
                    self.name()
                ))
            })
        };
        ids.iter().map(place).collect()
    }

    /// That none of the ids is here.
    pub fn refuse_known(&self, ids: &[Id]) -> Result<()> {
        match ids.iter().find(|id| self.directory.locate(id).is_some()) {
            None => Ok(()),
            Some(known) => Err(Error::DuplicateId(format!(
                "id {} is already in {}; nothing was written. Use upsert to replace it, or update to change it.",
                shown(known),
                self.name()
            ))),
        }
    }

    /// What rows are taken less before they are sealed: as it was given, or that of the latest segment that has one. Empty where that is
    /// nothing.
    pub fn center<'b>(&self, given: &'b [f32]) -> &'b [f32]
    where
        'a: 'b,
    {
        if given.is_empty() { self.directory.centre_in_use() } else { given }
    }

    /// The same for these rows, which choose one where they lie far from zero, or from the centers that there are.
    pub fn center_for(&self, given: &[f32], rows: &[f32]) -> Vec<f32> {
        let (spec, present) = (self.owner.spec(), self.center(given));
        match given.is_empty() && centred(spec) {
            true => chosen(spec, rows, present, &self.directory.centres()),
            false => present.to_vec(),
        }
    }

    /// Rows of a segment that count.
    pub fn live_rows(&self, id: SegmentId) -> Vec<u32> {
        let names = self.directory.names(id).into_iter().flatten().enumerate();
        names.filter_map(|(row, name)| name.map(|_| row as u32)).collect()
    }

    /// The rows of the segments around this center, of those allowed.
    pub fn around(&self, center: &[f32], allow: Option<&Selection>) -> Selection {
        let here = |id: &SegmentId| self.directory.centre(*id).unwrap_or_default() == center;
        let segments = self.directory.segments().map(|(id, ..)| id).filter(here);
        let allowed = |id, row: &u32| allow.is_none_or(|allow| allow.allows(id, *row as usize));
        let rows = |id| self.live_rows(id).into_iter().filter(move |row| allowed(id, row));
        self.directory.choose(segments.map(|id| (id, rows(id))))
    }

    /// Puts an unsealed row where it was put in: with its length, which `ip` and `l2` keep, and its center; else at unit length.
    pub fn rescale(&self, segment: SegmentId, id: &Id, row: &mut [f32]) {
        if self.owner.spec().metric() == Metric::Hamming {
            return;
        }
        let center = self.directory.centre(segment).unwrap_or_default();
        let length = row.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>().sqrt();
        let norm = self.directory.norm(id).unwrap_or_default();
        let scale = if length > 0.0 { norm / length } else { 0.0 };
        for (column, x) in row.iter_mut().enumerate() {
            *x = (f64::from(*x) * scale
                + f64::from(center.get(column).copied().unwrap_or_default()))
                as f32;
        }
    }
}

/// An id as messages have it.
pub fn shown(id: &Id) -> String {
    match id {
        Id::Number(number) => number.to_string(),
        Id::Text(text) => format!("{text:?}"),
    }
}

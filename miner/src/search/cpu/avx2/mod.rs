//! The kernel for processors with AVX2, BMI2 and ADX: products in scalar registers ([`adx`]), and the
//! top words of four centres in vectors ([`rows`]). Everything else is the portable kernel's.
//!
//! **The contract of every `unsafe` in this module:** the processor has AVX2, BMI1, BMI2, ADX, LZCNT
//! and POPCNT. `Kernel::Avx2` is made only where [`is_supported`] is true, and only its walks use
//! `Fe<true>`.

pub mod adx;
mod rows;

pub use rows::SLACK;
#[cfg(test)]
pub use rows::top_words_in_memory;

use super::field::Fe;
use super::filter::Filter;
use super::formula::Centre;
use super::portable;
use super::screen::{Marks, Place, Screen, Screened};
use super::table::{Affine, Table};
use super::walk::{Recorder, Round, confirm, walk_round};
use super::whole::WholeScreen;
use rows::RowScreen;

/// Centres a round.
pub const CENTRES: usize = 4;

/// Whether this processor has all instructions of the kernel.
pub fn is_supported() -> bool {
    is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("adx")
        && is_x86_feature_detected!("lzcnt")
        && is_x86_feature_detected!("popcnt")
}

impl Screened for Fe<true> {
    const HAS_ONE_LOOKUP: bool = true;
    const FEW_INTERVALS: usize = 3;

    type Few = RowScreen<true>;
    type Cells = RowScreen<false>;
    type Gathers = RowScreen<false>;
    type Loads = RowScreen<false>;
    type Whole = WholeScreen<Fe<true>>;

    fn marks(filter: &Filter, top_words: &[[u64; 2]; 9]) -> Marks {
        portable::marks(filter, top_words)
    }

    fn run_round<N: Screen<Fe<true>>, const W: usize>(
        table: &Table<Fe<true>>,
        round: &Round<Fe<true>, W>,
        prefixes: &mut [[Fe<true>; W]],
        screen: &mut N,
        recorder: &mut Recorder,
    ) -> (u64, Option<[Affine<Fe<true>>; W]>) {
        // SAFETY: the contract above.
        unsafe { round_apart(table, round, prefixes, screen, recorder) }
    }

    #[cold]
    #[inline(never)]
    fn run_confirm<N: Screen<Fe<true>>, const W: usize>(
        table: &Table<Fe<true>>,
        round: &Round<Fe<true>, W>,
        place: (Place, usize),
        centre: &Centre<Fe<true>>,
        q: Fe<true>,
        screen: &N,
        recorder: &mut Recorder,
    ) {
        confirm(table, round, place, centre, q, screen, recorder);
    }
}

/// [`walk_round`], compiled for this kernel.
#[target_feature(enable = "avx2,bmi1,bmi2,adx,lzcnt,popcnt")]
#[inline(never)]
fn round_apart<N: Screen<Fe<true>>, const W: usize>(
    table: &Table<Fe<true>>,
    round: &Round<Fe<true>, W>,
    prefixes: &mut [[Fe<true>; W]],
    screen: &mut N,
    recorder: &mut Recorder,
) -> (u64, Option<[Affine<Fe<true>>; W]>) {
    walk_round(table, round, prefixes, screen, recorder)
}

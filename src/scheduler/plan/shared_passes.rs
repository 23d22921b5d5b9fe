//! The pool's passes that devices share, to save memory. There may be thousands of devices, and a
//! pass of a hundred thousand patterns takes some 20 MB.

use super::canary::CanarySeed;
use super::pass::Pass;
use super::select::Selection;
use std::sync::{Arc, Weak};

/// The passes in use, which devices with canaries of the same kind share.
#[derive(Debug, Default)]
pub struct SharedPasses(Vec<SharedPass>);

#[derive(Debug)]
struct SharedPass {
    selection: Selection,
    /// The value of [`super::jobs::OpenJobs::raises`] when the pass was made.
    raises: u64,
    /// The bits of the canary's seed, and whether it is for a GPU.
    canary: (u32, bool),
    /// Whether the pass has only rare patterns.
    rare_alone: bool,
    pass: Weak<Pass>,
}

impl SharedPasses {
    /// Returns the pass of this selection, without plentiful patterns if `rare_alone`. Makes it
    /// only if no device with such a canary has it in use.
    pub fn pass(
        &mut self,
        selection: &Selection,
        raises: u64,
        canary: &CanarySeed,
        rare_alone: bool,
        make: impl FnOnce() -> Pass,
    ) -> Arc<Pass> {
        let canary = (canary.pattern.bits(), canary.for_gpu);
        let is_it = |one: &&SharedPass| {
            (one.raises, one.canary, one.rare_alone) == (raises, canary, rare_alone)
                && one.selection.has_pass_of(selection)
        };
        if let Some(pass) = self.0.iter().filter(is_it).find_map(|one| one.pass.upgrade()) {
            return pass;
        }
        self.0.retain(|one| one.pass.strong_count() > 0);
        let pass = Arc::new(make());
        let (selection, weak) = (selection.clone(), Arc::downgrade(&pass));
        self.0.push(SharedPass { selection, raises, canary, rare_alone, pass: weak });
        pass
    }
}

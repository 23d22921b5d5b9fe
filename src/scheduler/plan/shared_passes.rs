//! The pool's passes that devices share, to save memory. There may be thousands of workers'
//! devices, and a pass of a hundred thousand patterns takes some 20 MB.

use super::pass::Pass;
use super::select::Selection;
use std::sync::{Arc, Weak};

/// The passes in use by devices that share them.
#[derive(Debug, Default)]
pub struct SharedPasses {
    /// Each pass with its selection, and whether it has only rare patterns.
    passes: Vec<(Selection, bool, Weak<Pass>)>,
}

impl SharedPasses {
    /// Returns the pass of this selection, without plentiful patterns if `rare_alone`. Makes it
    /// only if no device has it in use.
    pub fn pass(&mut self, selection: &Selection, rare_alone: bool, make: impl FnOnce() -> Pass) -> Arc<Pass> {
        let is_it = |(of, alone, _): &&(Selection, bool, Weak<Pass>)| *alone == rare_alone && of.has_pass_of(selection);
        if let Some(pass) = self.passes.iter().filter(is_it).find_map(|(.., pass)| pass.upgrade()) {
            return pass;
        }
        self.passes.retain(|(.., pass)| pass.strong_count() > 0);
        let pass = Arc::new(make());
        self.passes.push((selection.clone(), rare_alone, Arc::downgrade(&pass)));
        pass
    }
}

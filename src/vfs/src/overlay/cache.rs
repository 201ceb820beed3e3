//! The dentry cache: how many clean entries a tree remembers, and how it forgets them.

use std::rc::Rc;

use super::{Entry, Node, Tree};

/// Clean entries that are remembered. A Python with its packages looks up about 2,000.
pub(super) const MAX_CACHED: usize = 16 << 10;

impl Tree {
    /// Counts one more clean entry; makes room first if there are too many.
    pub(super) fn count_cached(&self) {
        if self.cached.get() >= self.cache_bound.get() {
            self.evict();
        }
        self.cached.set(self.cached.get() + 1);
    }

    /// Forgets every clean entry that nobody holds.
    pub(super) fn evict(&self) {
        let Some(root) = self.root.borrow().upgrade() else {
            return;
        };
        let mut directories = vec![root];
        let mut next = 0;
        while let Some(directory) = directories.get(next) {
            let children: Vec<_> = directory
                .entries()
                .iter()
                .flat_map(|entries| {
                    entries
                        .borrow()
                        .values()
                        .map(|e| e.node.clone())
                        .collect::<Vec<_>>()
                })
                .flatten()
                .filter(|node| node.entries().is_some_and(|e| !e.borrow().is_empty()))
                .collect();
            directories.extend(children);
            next += 1;
        }
        let mut remaining = 0;
        // Children come after their parents, so that backwards each directory is seen after
        // what it holds has been dropped.
        while let Some(directory) = directories.pop() {
            let Some(entries) = directory.entries() else {
                continue;
            };
            entries.borrow_mut().retain(|_, entry| {
                let keep = !entry.is_evictable();
                remaining += usize::from(keep && entry.is_clean());
                keep
            });
        }
        self.cached.set(remaining);
        // Entries in use cannot be dropped: do not try again before they are outnumbered.
        self.cache_bound.set(MAX_CACHED.max(2 * remaining));
    }
}

impl Entry {
    pub(super) fn is_clean(&self) -> bool {
        match &self.node {
            Some(node) => !node.pinned.get(),
            None => !self.shadows,
        }
    }

    fn is_evictable(&self) -> bool {
        self.is_clean()
            && self.node.as_ref().is_none_or(|node| {
                Rc::strong_count(node) == 1
                    && node
                        .entries()
                        .is_none_or(|entries| entries.borrow().is_empty())
            })
    }
}

impl Node {
    /// A clean entry is gone, or no longer clean.
    pub(super) fn uncount_cached(&self) {
        let cached = &self.tree.cached;
        cached.set(cached.get().saturating_sub(1));
    }
}

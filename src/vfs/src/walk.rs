//! Resolves guest paths.
//!
//! The walk takes one component at a time, because mounts, whiteouts and symlinks are the
//! guest's and mean nothing to the host. It never leaves the guest's root: `..` there stays,
//! and absolute links begin there. See path_resolution(7) for the rules.

use std::rc::Rc;

use rustix::io::Errno;

use crate::mount::{Location, Mount, NodeRef};
use crate::procfs::MagicLink;
use crate::volume::Descent;
use crate::{FileKind, PATH_MAX, ProcView, ResolveFlags, Result};

/// Most symlinks of one walk (`MAXSYMLINKS` of `linux/namei.h`).
const MAX_SYMLINKS: u32 = 40;

/// What a walk is for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Walk {
    /// Follow a symlink in the last component.
    pub(crate) follow: bool,
    pub(crate) slash: Slash,
    pub(crate) resolve: ResolveFlags,
}

/// What a slash behind the last component means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slash {
    /// A symlink there is followed, too.
    Follows,
    /// Nothing to the walk: the last component is to be created, removed or renamed.
    Ignored,
    /// EISDIR, before anybody looks: a regular file is to be created.
    Refused,
}

impl Walk {
    /// To find a node.
    pub(crate) fn find(follow: bool) -> Walk {
        Walk {
            follow,
            slash: Slash::Follows,
            resolve: ResolveFlags::empty(),
        }
    }

    /// To create, remove or rename the last component.
    pub(crate) fn edit() -> Walk {
        Walk {
            follow: false,
            slash: Slash::Ignored,
            resolve: ResolveFlags::empty(),
        }
    }
}

/// What the last component is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Last {
    Name(Vec<u8>),
    Dot,
    DotDot,
    /// The path has no component, only slashes; or it ended in a jump through a magic link.
    Root,
}

/// Where a walk ended.
pub(crate) enum Target {
    Node(Location),
    /// A link in `/proc/self/fd` that was followed.
    Descriptor(i32),
    Missing,
}

pub(crate) struct Resolved {
    /// The directory that holds the last component.
    pub(crate) parent: Location,
    pub(crate) last: Last,
    pub(crate) target: Target,
    /// A slash follows the last component.
    pub(crate) slash: bool,
}

impl Resolved {
    /// The name to create, remove or rename in `parent`; `special` if there is none.
    pub(crate) fn name(&self, special: Errno) -> Result<&[u8]> {
        match &self.last {
            Last::Name(name) => Ok(name),
            Last::Dot | Last::DotDot | Last::Root => Err(special),
        }
    }
}

/// The state of one walk.
struct Walker<'a> {
    mounts: &'a [Rc<Mount>],
    view: &'a dyn ProcView,
    walk: Walk,
    /// Where absolute paths and links begin.
    root: Location,
    /// Where `BENEATH` and `IN_ROOT` hold the walk.
    base: &'a Location,
    here: Location,
    links: u32,
    descent: Descent,
}

pub(crate) fn resolve(
    mounts: &[Rc<Mount>],
    view: &dyn ProcView,
    base: &Location,
    path: &[u8],
    walk: Walk,
) -> Result<Resolved> {
    if path.is_empty() {
        return Err(Errno::NOENT);
    }
    if path.len() >= PATH_MAX {
        return Err(Errno::NAMETOOLONG);
    }
    if path.contains(&0) {
        return Err(Errno::INVAL);
    }
    let in_root = walk.resolve.contains(ResolveFlags::IN_ROOT);
    let root = match mounts.first() {
        Some(mount) if !in_root => Location::root_of(mount),
        _ => base.clone(),
    };
    let walker = Walker {
        mounts,
        view,
        walk,
        root,
        base,
        here: base.clone(),
        links: 0,
        descent: Descent::default(),
    };
    walker.run(path.to_vec())
}

/// What one component led to.
enum Step {
    /// Go on from where the walk is now.
    Continue,
    /// Go on with this path instead of the component.
    Expand(Vec<u8>),
    Done(Target),
}

impl Walker<'_> {
    fn run(mut self, mut path: Vec<u8>) -> Result<Resolved> {
        let mut start = 0;
        if path.first() == Some(&b'/') {
            self.go_to_root()?;
        }
        loop {
            let rest = path.get(start..).unwrap_or_default();
            let skipped = rest.iter().take_while(|byte| **byte == b'/').count();
            let rest = rest.get(skipped..).unwrap_or_default();
            let length = rest.iter().position(|b| *b == b'/').unwrap_or(rest.len());
            let (component, tail) = rest.split_at(length);
            let is_last = tail.iter().all(|byte| *byte == b'/');
            let slash = !tail.is_empty();
            let parent = self.here.clone();
            if component.is_empty() {
                return Ok(self.end(parent, Last::Root, slash));
            }
            self.here.require_directory()?;
            let last = match component {
                b"." => Last::Dot,
                b".." => {
                    self.go_up()?;
                    Last::DotDot
                }
                name => match self.step(name, is_last, slash)? {
                    Step::Continue => Last::Name(name.to_vec()),
                    Step::Done(target) => {
                        let last = Last::Name(name.to_vec());
                        return self.done(parent, last, target, slash);
                    }
                    Step::Expand(mut target) => {
                        let absolute = target.first() == Some(&b'/');
                        target.extend_from_slice(tail);
                        path = target;
                        start = 0;
                        if absolute {
                            self.go_to_root()?;
                        }
                        continue;
                    }
                },
            };
            if is_last {
                return Ok(self.end(parent, last, slash));
            }
            start += skipped + length;
        }
    }

    fn end(self, parent: Location, last: Last, slash: bool) -> Resolved {
        Resolved {
            parent,
            last,
            target: Target::Node(self.here),
            slash,
        }
    }

    /// Ends at what is not simply the node where the walk is.
    fn done(self, parent: Location, last: Last, target: Target, slash: bool) -> Result<Resolved> {
        Ok(Resolved {
            parent,
            last,
            target,
            slash,
        })
    }

    fn forbids(&self, flag: ResolveFlags) -> bool {
        self.walk.resolve.intersects(flag)
    }

    fn go_to_root(&mut self) -> Result<()> {
        if self.forbids(ResolveFlags::BENEATH) {
            return Err(Errno::XDEV);
        }
        let crosses = self.here.mount.index != self.root.mount.index;
        if crosses && self.forbids(ResolveFlags::NO_XDEV) {
            return Err(Errno::XDEV);
        }
        self.here = self.root.clone();
        Ok(())
    }

    fn go_up(&mut self) -> Result<()> {
        if self.here.is_same(self.base) {
            if self.forbids(ResolveFlags::BENEATH) {
                return Err(Errno::XDEV);
            }
            if self.forbids(ResolveFlags::IN_ROOT) {
                return Ok(());
            }
        }
        let parent = self.here.parent()?;
        self.go_to(parent)
    }

    fn go_to(&mut self, place: Location) -> Result<()> {
        if self.forbids(ResolveFlags::NO_XDEV) && place.mount.index != self.here.mount.index {
            return Err(Errno::XDEV);
        }
        self.here = place;
        Ok(())
    }

    fn step(&mut self, name: &[u8], is_last: bool, slash: bool) -> Result<Step> {
        if is_last && slash && self.walk.slash == Slash::Refused {
            return Err(Errno::ISDIR);
        }
        let child = match self.here.child(self.view, name, &mut self.descent) {
            Ok(child) => cross(self.mounts, child),
            Err(Errno::NOENT) if is_last => return Ok(Step::Done(Target::Missing)),
            Err(error) => return Err(error),
        };
        let follow = !is_last || self.walk.follow || (slash && self.walk.slash == Slash::Follows);
        if !follow || child.kind() != FileKind::Symlink {
            self.go_to(child)?;
            return Ok(Step::Continue);
        }
        self.links += 1;
        if self.links > MAX_SYMLINKS || self.forbids(ResolveFlags::NO_SYMLINKS) {
            return Err(Errno::LOOP);
        }
        match magic_link(&child) {
            Some(link) => self.jump(link, is_last && !slash),
            None => {
                let target = readlink(self.mounts, self.view, &child)?;
                if target.is_empty() {
                    return Err(Errno::NOENT);
                }
                Ok(Step::Expand(target))
            }
        }
    }

    /// Follows a link of `/proc` that leads to a node, not to a path.
    fn jump(&mut self, link: MagicLink, ends: bool) -> Result<Step> {
        if self.forbids(ResolveFlags::NO_MAGICLINKS) {
            return Err(Errno::LOOP);
        }
        if self.forbids(ResolveFlags::BENEATH | ResolveFlags::IN_ROOT) {
            return Err(Errno::XDEV);
        }
        let place = match link {
            MagicLink::Descriptor(fd) if ends => {
                return Ok(Step::Done(Target::Descriptor(fd)));
            }
            MagicLink::Descriptor(fd) => {
                let fd = self.view.fd(fd).ok_or(Errno::NOENT)?;
                fd.location.ok_or(Errno::NOTDIR)?
            }
            MagicLink::Executable => self.view.exe().ok_or(Errno::NOENT)?,
            MagicLink::CurrentDirectory => self.view.cwd(),
            MagicLink::Root => match self.mounts.first() {
                Some(mount) => Location::root_of(mount),
                None => return Err(Errno::NOENT),
            },
        };
        self.go_to(place)?;
        Ok(Step::Continue)
    }
}

fn magic_link(place: &Location) -> Option<MagicLink> {
    match &place.node {
        NodeRef::Proc(node) => node.magic_link(),
        NodeRef::Tree(_) | NodeRef::Volume(_) => None,
    }
}

/// The root of what is mounted at `place`, or `place`.
pub(crate) fn cross(mounts: &[Rc<Mount>], mut place: Location) -> Location {
    loop {
        let mount = match &place.node {
            NodeRef::Tree(node) => node.covered.get().and_then(|index| mounts.get(index)),
            NodeRef::Volume(_) | NodeRef::Proc(_) => mounts.iter().find(|m| {
                m.covers
                    .as_ref()
                    .is_some_and(|covers| covers.is_same(&place))
            }),
        };
        match mount {
            Some(mount) => place = Location::root_of(mount),
            None => return place,
        }
    }
}

/// The text of a symlink.
pub(crate) fn readlink(
    mounts: &[Rc<Mount>],
    view: &dyn ProcView,
    place: &Location,
) -> Result<Vec<u8>> {
    match &place.node {
        NodeRef::Tree(node) => node.readlink(),
        NodeRef::Volume(node) => node.readlink(),
        NodeRef::Proc(node) => node.readlink(mounts, view),
    }
}

#[cfg(test)]
mod tests;

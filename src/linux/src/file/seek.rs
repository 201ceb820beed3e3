//! lseek.

use std::rc::Rc;

use agentrt_vfs::{File, FileKind};
use rustix::fs::SeekFrom;
use rustix::io::Errno;

use crate::arguments::Arguments;
use crate::descriptor::{Description, Object};
use crate::guest::Guest;
use crate::stop::Result;
use crate::stream::Stream;

pub(super) fn lseek(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    let description = guest.task.descriptors.usable(arguments.i32(0))?;
    let (offset, whence) = (arguments.i64(1), arguments.i32(2));
    Ok(match &description.object {
        Object::Stream(stream) => seek_stream(stream, offset, whence)?,
        Object::File(file) if file.is_stream() => 0,
        Object::File(file) => {
            let target = target(&description, file, offset, whence)?;
            description.offset.set(target);
            target
        }
    })
}

fn seek_stream(stream: &Stream, offset: i64, whence: i32) -> std::result::Result<u64, Errno> {
    let unsigned = u64::try_from(offset);
    stream.seek(match whence {
        libc::SEEK_SET => SeekFrom::Start(unsigned.map_err(|_| Errno::INVAL)?),
        libc::SEEK_CUR => SeekFrom::Current(offset),
        libc::SEEK_END => SeekFrom::End(offset),
        libc::SEEK_DATA => SeekFrom::Data(unsigned.map_err(|_| Errno::NXIO)?),
        libc::SEEK_HOLE => SeekFrom::Hole(unsigned.map_err(|_| Errno::NXIO)?),
        _ => return Err(Errno::INVAL),
    })
}

fn target(
    description: &Description,
    file: &Rc<dyn File>,
    offset: i64,
    whence: i32,
) -> std::result::Result<u64, Errno> {
    let from = |start: u64| -> std::result::Result<u64, Errno> {
        let target = start.checked_add_signed(offset).ok_or(Errno::INVAL)?;
        if i64::try_from(target).is_ok() {
            Ok(target)
        } else {
            Err(Errno::INVAL)
        }
    };
    let is_directory = file.kind() == FileKind::Directory;
    let data = || u64::try_from(offset).map_err(|_| Errno::NXIO);
    match whence {
        libc::SEEK_SET => from(0),
        libc::SEEK_CUR => from(description.offset.get()),
        // Places in a directory are cookies: there is no arithmetic with them.
        libc::SEEK_END | libc::SEEK_DATA | libc::SEEK_HOLE if is_directory => Err(Errno::INVAL),
        libc::SEEK_END => from(file.size()?),
        libc::SEEK_DATA => file.seek_data(data()?),
        libc::SEEK_HOLE => file.seek_hole(data()?),
        _ => Err(Errno::INVAL),
    }
}

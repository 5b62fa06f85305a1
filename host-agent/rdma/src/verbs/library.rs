//! Opens libibverbs at run time and finds its functions; the program does not link it.
#![allow(unsafe_code)]

use std::ffi::{c_char, c_int, c_void};

use super::abi::{
    Channel, Context, Cq, Device, DeviceAttributes, GidEntry, Mr, Pd, PortAttributes, Qp,
    QpAttributes, QpInit,
};
use crate::verbs_error::VerbsError;

/// File name (soname) of libibverbs with its first stable ABI.
pub const NAME: &str = "libibverbs.so.1";

macro_rules! functions {
    ($($name:ident: fn($($argument:ty),*) $(-> $result:ty)?;)*) => {
        /// Function pointers to libibverbs, under the functions' names without `ibv_`.
        pub struct Library {
            $(pub $name: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
            /// The open library, which keeps the function pointers valid.
            _opened: libloading::Library,
        }

        impl Library {
            /// Opens the library with this file name, and looks up all functions.
            ///
            /// # Errors
            /// [`VerbsError::Library`], if the library is missing or lacks a function.
            pub fn open(name: &str) -> Result<Self, VerbsError> {
                // SAFETY: libibverbs has no requirements for loading; the soname identifies it.
                let opened = unsafe { libloading::Library::new(name) }.map_err(VerbsError::Library)?;
                Ok(Self {
                    $($name: {
                        // SAFETY: the type is that of libibverbs' function (verbs.h of rdma-core 44), which its symbol
                        // version keeps.
                        let found = unsafe { opened.get(symbol(stringify!($name)).as_bytes()) };
                        *found.map_err(VerbsError::Library)?
                    },)*
                    _opened: opened,
                })
            }
        }
    };
}

functions! {
    get_device_list: fn(*mut c_int) -> *mut *mut Device;
    free_device_list: fn(*mut *mut Device);
    get_device_name: fn(*mut Device) -> *const c_char;
    open_device: fn(*mut Device) -> *mut Context;
    close_device: fn(*mut Context) -> c_int;
    query_device: fn(*mut Context, *mut DeviceAttributes) -> c_int;
    query_port: fn(*mut Context, u8, *mut PortAttributes) -> c_int;
    query_gid_table: fn(*mut Context, *mut GidEntry, usize, u32, usize) -> isize;
    alloc_pd: fn(*mut Context) -> *mut Pd;
    dealloc_pd: fn(*mut Pd) -> c_int;
    reg_mr: fn(*mut Pd, *mut c_void, usize, c_int) -> *mut Mr;
    dereg_mr: fn(*mut Mr) -> c_int;
    create_comp_channel: fn(*mut Context) -> *mut Channel;
    destroy_comp_channel: fn(*mut Channel) -> c_int;
    create_cq: fn(*mut Context, c_int, *mut c_void, *mut Channel, c_int) -> *mut Cq;
    destroy_cq: fn(*mut Cq) -> c_int;
    get_cq_event: fn(*mut Channel, *mut *mut Cq, *mut *mut c_void) -> c_int;
    ack_cq_events: fn(*mut Cq, u32);
    create_qp: fn(*mut Pd, *mut QpInit) -> *mut Qp;
    modify_qp: fn(*mut Qp, *mut QpAttributes, c_int) -> c_int;
    destroy_qp: fn(*mut Qp) -> c_int;
}

/// Symbol of a function of libibverbs, with a zero byte at its end.
fn symbol(name: &str) -> String {
    match name {
        // The header has a wrapper around this symbol.
        "query_gid_table" => "_ibv_query_gid_table\0".to_owned(),
        name => format!("ibv_{name}\0"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_or_different_library_is_an_error() {
        let missing = Library::open("libibverbs-that-is-nowhere.so.1")
            .err()
            .expect("none");
        assert!(matches!(missing, VerbsError::Library(_)));
        assert!(
            missing.to_string().contains("libibverbs-that-is-nowhere"),
            "{missing}"
        );
        let other = Library::open("libc.so.6").err().expect("another");
        assert!(other.to_string().contains("ibv_get_device_list"), "{other}");
    }
}

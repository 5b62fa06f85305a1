//! weir: the controller.

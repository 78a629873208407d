// A box that scrolls sideways is reached by the keyboard; one that does not is passed over.

function reach() {
  for (const box of document.querySelectorAll("pre, .table-wrapper")) {
    if (box.scrollWidth > box.clientWidth) box.tabIndex = 0; else box.removeAttribute("tabindex");
  }
}

addEventListener("DOMContentLoaded", reach);
addEventListener("resize", reach);

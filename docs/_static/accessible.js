/* Names for what screen readers find without one in pages of Sphinx, its theme and its gallery. */
document.addEventListener("DOMContentLoaded", () => {
  for (const toggle of document.querySelectorAll("li.has-children > details > summary")) {
    const page = toggle.closest("li").querySelector("a").textContent.trim();
    toggle.setAttribute("aria-label", `Pages of ${page}`);
  }
  for (const link of document.querySelectorAll(".sphx-glr-thumbcontainer a.reference")) {
    link.setAttribute("aria-label", link.textContent.trim());
  }
  // The role of entries of a bibliography is deprecated, and Sphinx gives it to no list item.
  for (const entry of document.querySelectorAll(".citation, .citation-list")) {
    entry.removeAttribute("role");
  }
});

/* Names for what screen readers find without one in pages of Sphinx, its theme and its gallery. */
document.addEventListener("DOMContentLoaded", () => {
  for (const toggle of document.querySelectorAll("li.has-children > details > summary")) {
    const page = toggle.closest("li").querySelector("a").textContent.trim();
    toggle.setAttribute("aria-label", `Pages of ${page}`);
  }
  for (const link of document.querySelectorAll(".sphx-glr-thumbcontainer a.reference")) {
    link.setAttribute("aria-label", link.textContent.trim());
  }
  // Sentences among what code prints; tables are narrower. Lines of other outputs have no element.
  for (const line of document.querySelectorAll("div.highlight pre .go")) {
    line.classList.toggle("sentence", line.textContent.length > 88);
  }
  for (const output of document.querySelectorAll(".sphx-glr-script-out pre")) {
    const isLong = output.textContent.split("\n").some((line) => line.length > 88);
    if (isLong) output.style.whiteSpace = "pre-wrap";
  }
  // The role of entries of a bibliography is deprecated, and Sphinx gives it to no list item.
  for (const entry of document.querySelectorAll(".citation, .citation-list")) {
    entry.removeAttribute("role");
  }
});

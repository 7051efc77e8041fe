// Adds a button to each piece of code that copies it.

function addCopy(code) {
  const button = element("button", { type: "button", class: "copy" }, "Copy");
  button.addEventListener("click", async () => {
    const text = code.querySelector("code").textContent;
    const done = await copied(text, code);
    button.textContent = done ? "Copied" : "Press Ctrl+C";
    byId("status").textContent = done ? "Copied" : "The text is selected: press Ctrl+C to copy it";
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  });
  code.append(button);
}

// A page opened as a file may have no access to the clipboard: then the text is selected for the reader to copy.
async function copied(text, code) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    getSelection().selectAllChildren(code.querySelector("code"));
    return false;
  }
}

document.querySelectorAll("main .code").forEach(addCopy);

// Folded text is printed too, except for the points of plots.
addEventListener("beforeprint", () => document.querySelectorAll("details:not([open])").forEach((details) => {
  if (details.closest(".plotted")) return;
  details.open = true;
  details.dataset.folded = "";
}));
addEventListener("afterprint", () => document.querySelectorAll("details[data-folded]").forEach((details) => {
  details.open = false;
  delete details.dataset.folded;
}));

// Copies the key of a new account.
const button = document.getElementById("copy");
const key = document.getElementById("key");
const said = document.getElementById("copied");

button.hidden = false;
button.addEventListener("click", async () => {
  key.select();
  try {
    await navigator.clipboard.writeText(key.value);
    said.textContent = "Copied. Keep it where you keep passwords.";
  } catch {
    // Without https a browser lets no page write there; what is selected can still be copied.
    said.textContent = "Your browser does not let this page copy. The key is selected: press Ctrl+C.";
  }
});

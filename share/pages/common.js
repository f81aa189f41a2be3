'use strict';
// What the server's pages share: the token, and requests with it.
const by = id => document.getElementById(id);
const say = error => { by('error').textContent = error.message; };

async function ask(path, body, signal) {
  const headers = by('token').value ? {Authorization: 'Bearer ' + by('token').value} : {};
  const answer = await fetch(path, {method: body === undefined ? 'GET' : 'POST', headers, body, signal});
  if (answer.ok) return answer;
  let text = await answer.text();
  try { text = JSON.parse(text).error; } catch { /* another server's words */ }
  if (answer.status === 401)
    text += '. Type what the server printed as `token` when it started (or its option token=), or open the address that it printed as `page`.';
  throw new Error(text || `${answer.status} ${answer.statusText}`);
}

/// The value under a key that this window keeps; null where it may not.
const read = key => { try { return sessionStorage.getItem(key); } catch { return null; } };
const keep = (key, value) => { try { sessionStorage.setItem(key, value); } catch { /* not allowed */ } };
by('token').value = new URLSearchParams(location.hash.slice(1)).get('token') ?? read('token') ?? '';
history.replaceState(null, '', location.pathname);  // no token in bookmarks

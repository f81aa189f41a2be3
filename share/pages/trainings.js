// The page /trainings. A report is shown without its script: it comes from a file.
let chosen = null, chosen_at = 0, last = '';

async function show(run) {
  chosen = run;
  const text = await (await ask('trainings/report?' + new URLSearchParams({run}))).text();
  if (chosen !== run || text === last) return;
  last = by('report').srcdoc = text;
  by('report').hidden = false;
}

async function look() {
  try {
    const runs = await (await ask('trainings/list')).json();
    by('status').textContent = runs.length ? '' : 'There is no training yet.';
    by('runs').replaceChildren(...runs.map(({run, is_running, changed}) => {
      const item = document.createElement('li'), button = document.createElement('button');
      button.textContent = run;
      button.ariaPressed = run === chosen;
      button.onclick = () => show(run).then(look).catch(say);
      item.append(button, is_running ? ' runs' : ' ended ' + new Date(1000 * changed).toLocaleString());
      return item;
    }));
    const changed = runs.find(({run}) => run === chosen)?.changed;
    if (changed && changed !== chosen_at) {
      await show(chosen);
      chosen_at = changed;
    }
    by('error').textContent = '';
  } catch (error) {
    say(error);
  }
}

by('token').onchange = look;
look();
setInterval(look, 3000);

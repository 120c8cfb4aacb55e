import { useIsFetching } from '@tanstack/preact-query';
import { Button } from '../ui/button.tsx';
import { consoleQueries } from './api.ts';
import { useConsole } from './texts.ts';

/** Reads again all that the page shows. */
export function RefreshButton() {
  const t = useConsole();
  const isFetching = useIsFetching() > 0;
  const refresh = (): void => {
    consoleQueries.invalidateQueries().catch(() => undefined);
  };
  return (
    <Button icon="refresh" busy={isFetching} onClick={refresh}>
      {t('refresh')}
    </Button>
  );
}

// Times LEMON's HowardMmc on a graph read from standard input: nodes, actions, then one reward per arc,
// arc (h, a) leading to (h * actions + a) mod nodes. Prints the best mean and the least CPU seconds.
#include <lemon/howard_mmc.h>
#include <lemon/smart_graph.h>

#include <cstdio>
#include <ctime>
#include <vector>

int main() {
    long nodes, actions, repeats;
    if (std::scanf("%ld %ld %ld", &nodes, &actions, &repeats) != 3) return 1;
    lemon::SmartDigraph graph;
    graph.reserveNode(nodes);
    graph.reserveArc(nodes * actions);
    std::vector<lemon::SmartDigraph::Node> node(nodes);
    for (long h = 0; h < nodes; ++h) node[h] = graph.addNode();
    lemon::SmartDigraph::ArcMap<double> cost(graph);
    for (long h = 0; h < nodes; ++h) {
        for (long a = 0; a < actions; ++a) {
            double reward;
            if (std::scanf("%lf", &reward) != 1) return 1;
            cost[graph.addArc(node[h], node[(h * actions + a) % nodes])] = -reward;
        }
    }
    double best = 1e300, mean = 0;
    for (long run = 0; run < repeats; ++run) {
        lemon::HowardMmc<lemon::SmartDigraph, lemon::SmartDigraph::ArcMap<double>> howard(graph, cost);
        const std::clock_t start = std::clock();
        howard.findCycleMean();
        const double seconds = double(std::clock() - start) / CLOCKS_PER_SEC;
        if (seconds < best) best = seconds;
        mean = -howard.cycleMean();
    }
    std::printf("%.15g %.9f\n", mean, best);
    return 0;
}
